// SPDX-License-Identifier: Apache-2.0
// disc-L: L linear layers 2 -> 4 -> 8 -> ... -> 2^L -> 2 on points of a plane. Each layer more
// quadruples the parameters, which makes the family a ruler for the crossover. disc-LxF, the sizes
// between those sizes, has hidden widths F times as wide, rounded.
#include "crossover/catalogue.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <stdexcept>

namespace crossover {
namespace {

constexpr int fewest_layers = 2;
constexpr int most_layers = 12;
constexpr std::int64_t unit = 10000;  ///< factors are counted in ten-thousandths
constexpr std::int64_t end_of_factors = 4 * unit;

struct Disc {
  int layers = 0;
  std::int64_t factor = unit;
};

std::vector<std::int64_t> widths(const Disc& disc) {
  std::vector<std::int64_t> all{2};
  for (int i = 2; i <= disc.layers; ++i) {
    all.push_back(((disc.factor << i) + unit / 2) / unit);
  }
  all.push_back(2);
  return all;
}

std::int64_t parameters(const Disc& disc) {
  const std::vector<std::int64_t> all = widths(disc);
  std::int64_t count = 0;
  for (std::size_t i = 1; i < all.size(); ++i) {
    count += (all[i - 1] + 1) * all[i];
  }
  return count;
}

/// 15000 -> "1.5".
std::string factor_text(std::int64_t factor) {
  std::string digits = std::to_string(factor % unit + unit).substr(1);
  digits.erase(digits.find_last_not_of('0') + 1);
  return std::to_string(factor / unit) + (digits.empty() ? "" : "." + digits);
}

std::string name_of(const Disc& disc) {
  return "disc-" + std::to_string(disc.layers) +
         (disc.factor == unit ? "" : "x" + factor_text(disc.factor));
}

/// A whole number of digits alone; -1 where the text is none.
std::int64_t whole(const std::string& text) {
  std::int64_t value = -1;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc{} && stop == end ? value : -1;
}

/// In ten-thousandths; -1 where the text is no such number.
std::int64_t factor_of(const std::string& text) {
  constexpr std::size_t most_decimals = 4;
  const std::size_t point = std::min(text.find('.'), text.size());
  std::string decimals = text.substr(std::min(point + 1, text.size()));
  if (decimals.size() > most_decimals) {
    return -1;
  }
  decimals.resize(most_decimals, '0');
  const std::int64_t units = whole(text.substr(0, point));
  const std::int64_t parts = whole(decimals);
  return units < 0 || units > end_of_factors || parts < 0 ? -1 : units * unit + parts;
}

bool is_between(const std::string& name) {
  return name.starts_with("disc-") && name.find('x') != std::string::npos;
}

/// Throws std::invalid_argument where it is the name of none. A network has one name: a factor with
/// a zero too many is refused.
Disc disc_of(const std::string& name) {
  const std::size_t dash = name.find('-') + 1;
  const std::size_t times = std::min(name.find('x', dash), name.size());
  Disc disc{.layers = static_cast<int>(whole(name.substr(dash, times - dash)))};
  if (times < name.size()) {
    disc.factor = factor_of(name.substr(times + 1));
  }
  const bool is_there = disc.layers >= fewest_layers && disc.layers <= most_layers &&
                        disc.factor >= unit && disc.factor < end_of_factors;
  if (!is_there || name_of(disc) != name) {
    throw std::invalid_argument(
        "there is no network '" + name +
        "'; disc-LxF is disc-L (L from 2 to 12) with its hidden widths times F, a number above 1 "
        "and below 4 of at most four decimals, the last of them no 0: disc-8x1.5");
  }
  return disc;
}

std::vector<LadderSize> all_sizes() {
  constexpr std::int64_t step = unit / 16;
  constexpr double nearly = 0.95;  // of the next: disc-8x2 lacks 28 parameters of disc-9
  std::vector<LadderSize> sizes;
  for (int layers = fewest_layers; layers <= most_layers; ++layers) {
    const bool is_last = layers == most_layers;
    const auto end = static_cast<double>(parameters({.layers = is_last ? layers : layers + 1}));
    for (Disc disc{.layers = layers}; disc.factor < end_of_factors; disc.factor += step) {
      const std::int64_t own = parameters(disc);
      if (disc.factor > unit && static_cast<double>(own) > nearly * end) {
        break;
      }
      if (sizes.empty() || own > sizes.back().parameters) {
        sizes.push_back({.name = name_of(disc), .parameters = own});
      }
    }
  }
  return sizes;
}

}  // namespace

const std::vector<LadderSize>& disc_sizes() {
  static const std::vector<LadderSize> sizes = all_sizes();
  return sizes;
}

const LadderSize& nearest_disc(std::int64_t parameters) {
  const std::vector<LadderSize>& sizes = disc_sizes();
  const auto distance = [&](const LadderSize& size) {
    return std::abs(size.parameters - parameters);
  };
  return *std::min_element(
      sizes.begin(), sizes.end(),
      [&](const LadderSize& a, const LadderSize& b) { return distance(a) < distance(b); });
}

Family disc_family() {
  Family family;
  for (int layers = fewest_layers; layers <= most_layers; ++layers) {
    family.names.push_back(name_of({.layers = layers}));
  }
  family.also = is_between;
  family.ladder = "disc";
  family.sizes = disc_sizes;
  family.make = [](const std::string& name) {
    return Task{.model = mlp(name, widths(disc_of(name)), Activation::relu),
                .rows = 1000,
                .batch = 100,
                .optimizer = SgdOptions{.learning_rate = 0.1},
                .generate = disc_points};
  };
  return family;
}

}  // namespace crossover
