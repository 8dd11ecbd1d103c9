// SPDX-License-Identifier: Apache-2.0
#include "run/schedule.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace crossover::bench {
namespace {

/// What comes after the overview. A family that is not named here comes last: a new one goes where
/// it is worth its minutes.
constexpr std::array worth{"Epoch", "Copy", "Gemm", "Layer", "Minibatch"};

/// How large the work is, which an overview need not vary.
const std::set<std::string> size_axes{"model", "batch", "bytes", "m", "n", "k", "width", "size"};

bool trains(const std::string& family) { return family == "Epoch" || family == "Minibatch"; }

bool on_gpu(const Row& row) { return !row.device->is_host; }

/// The row by which a network is represented: one of the fastest.
bool stands_for_its_network(const Row& row, const std::string& most_threads) {
  return value_or_unsaid(row.configuration, "precision") == "f32" &&
         (on_gpu(row)
              ? value_or_unsaid(row.configuration, "execution") ==
                    (value_or_unsaid(row.configuration, "family") == "Minibatch" ? "graph"
                                                                                 : "graph-epoch")
              : value_or_unsaid(row.configuration, "cpu_threads") == most_threads);
}

std::string missing_for(const Row& row, const std::string& precision) {
  for (const Precision known : {Precision::f32, Precision::tf32, Precision::bf16, Precision::f16}) {
    if (to_string(known) == precision) {
      return row.device->backend->missing_for(known);
    }
  }
  return "";
}

/// Small products are all alike, a start and a wait; on the CPU squares must do.
bool is_wanted_product(const Row& row) {
  constexpr double least = 1e6;  // multiplications
  const double m = std::stod(value_or_unsaid(row.configuration, "m"));
  const double n = std::stod(value_or_unsaid(row.configuration, "n"));
  const double k = std::stod(value_or_unsaid(row.configuration, "k"));
  const bool is_square = m == n && n == k;
  const bool is_plain = value_or_unsaid(row.configuration, "transpose") == "nn" &&
                        value_or_unsaid(row.configuration, "cache") == "warm";
  const bool is_f32 = value_or_unsaid(row.configuration, "precision") == "f32";
  return is_square ? is_plain || (on_gpu(row) && is_f32)
                   : on_gpu(row) && is_f32 && m * n * k >= least;
}

/// Other precisions than f32 are shown on fewer rows: in the way that is fast, and on squares.
bool is_wanted(const Row& row, const std::string& most_threads) {
  const std::string precision = value_or_unsaid(row.configuration, "precision");
  const std::string family = value_or_unsaid(row.configuration, "family");
  if (family == "Copy") {
    return value_or_unsaid(row.configuration, "model")
        .empty();  // batches: between two of the sizes
  }
  if (family == "Gemm" && !is_wanted_product(row)) {
    return false;
  }
  // Large steps: how they are launched, and where their data lies, says little. Each is verified
  // for seconds.
  if (family == "Minibatch" && on_gpu(row) &&
      (value_or_unsaid(row.configuration, "execution") != "graph" ||
       value_or_unsaid(row.configuration, "data") != "resident")) {
    return false;
  }
  if (family == "Minibatch" && !on_gpu(row) &&
      (precision != "f32" || value_or_unsaid(row.configuration, "cpu_threads") != most_threads)) {
    return false;
  }
  if (precision.empty() || precision == "f32" || family == "Peak") {
    return true;
  }
  if (!missing_for(row, precision).empty()) {
    return false;
  }
  if (!on_gpu(row) && value_or_unsaid(row.configuration, "cpu_threads") != most_threads) {
    return false;
  }
  if (trains(family) && on_gpu(row)) {
    return value_or_unsaid(row.configuration, "execution") == "graph" &&
           value_or_unsaid(row.configuration, "data") == "resident";
  }
  return family != "Layer" || value_or_unsaid(row.configuration, "form") == "fused";
}

std::string most_threads_of(Rows& rows, const std::vector<std::string>& names) {
  int most = 0;
  for (const std::string& name : names) {
    const std::string threads = value_or_unsaid(rows[name].configuration, "cpu_threads");
    most = std::max(most, threads.empty() ? 0 : std::stoi(threads));
  }
  return std::to_string(most);
}

/// One row at least for each value of each axis of each family on each device; of networks, one for
/// each. The largest come first, and are what such a row is of: registration goes from small to
/// large.
std::set<std::string> overview(Rows& rows, const std::vector<std::string>& names,
                               const std::string& most_threads) {
  std::vector<std::string> candidates(names.rbegin(), names.rend());
  std::stable_partition(candidates.begin(), candidates.end(), [&](const std::string& name) {
    const Row& row = rows[name];
    return value_or_unsaid(row.configuration, "family") == "Copy"
               ? !value_or_unsaid(row.configuration, "bytes").empty()
               : stands_for_its_network(row, most_threads);
  });
  std::set<std::string> chosen;
  std::set<std::tuple<std::string, std::string, std::string, std::string>> shown;
  for (const std::string& name : candidates) {
    const Row& row = rows[name];
    const std::string family = value_or_unsaid(row.configuration, "family");
    bool is_new = false;
    for (const auto& [key, value] : row.configuration) {
      const bool is_network = family == "Epoch" && key == "model";
      if (!size_axes.contains(key) || is_network) {
        is_new |=
            shown.emplace(family, value_or_unsaid(row.configuration, "device"), key, value).second;
      }
    }
    if (is_new) {
      chosen.insert(name);
    }
  }
  return chosen;
}

struct Place {
  std::size_t pass;
  std::size_t family;
  bool on_cpu;
  std::size_t registered;

  // clang-tidy 14 takes the comparison with zero that the compiler makes for ours.
  // NOLINTNEXTLINE(modernize-use-nullptr,readability-implicit-bool-conversion)
  friend auto operator<=>(const Place&, const Place&) = default;
};

std::vector<PlannedRow> by_worth(Rows& rows, const std::vector<std::string>& names) {
  const std::string most_threads = most_threads_of(rows, names);
  std::vector<std::string> wanted;
  std::copy_if(names.begin(), names.end(), std::back_inserter(wanted),
               [&](const std::string& name) { return is_wanted(rows[name], most_threads); });
  const std::set<std::string> first = overview(rows, wanted, most_threads);

  std::map<Place, PlannedRow> ordered;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const Row& row = rows[wanted[i]];
    const std::string family = value_or_unsaid(row.configuration, "family");
    const auto rank = static_cast<std::size_t>(worth_rank(family));
    const bool on_cpu = !on_gpu(row);
    PlannedRow planned{.name = wanted[i], .pass = family};
    Place place{.pass = 2 + rank, .family = rank, .on_cpu = on_cpu, .registered = i};
    if (family == "Peak") {
      planned.pass = "ceilings";
      place.pass = 0;
    } else if (first.contains(wanted[i])) {
      planned.pass = "overview";
      place = {.pass = 1,
               .family = on_cpu ? worth.size() + 1 + rank : rank,
               .on_cpu = on_cpu,
               .registered = i};
    }
    ordered.emplace(place, std::move(planned));
  }
  std::vector<PlannedRow> plan;
  plan.reserve(ordered.size());
  for (auto& [place, planned] : ordered) {
    plan.push_back(std::move(planned));
  }
  return plan;
}

}  // namespace

int worth_rank(const std::string& family) {
  return static_cast<int>(std::find(worth.begin(), worth.end(), family) - worth.begin());
}

void expect(std::vector<PlannedRow>& plan, Rows& rows) {
  std::set<std::string> references;
  for (PlannedRow& planned : plan) {
    const Row& row = rows[planned.name];
    planned.seconds = row.expected.all;
    if (references.insert(row.reference).second) {
      planned.seconds += row.reference_seconds;
    }
  }
}

std::vector<PlannedRow> schedule(Rows& rows, const std::vector<std::string>& names,
                                 const Sweep& sweep) {
  std::vector<PlannedRow> plan;
  if (sweep.by_worth) {
    plan = by_worth(rows, names);
  } else {
    for (const std::string& name : names) {
      plan.push_back({.name = name, .pass = value_or_unsaid(rows[name].configuration, "family")});
    }
  }
  expect(plan, rows);
  return plan;
}

void print(std::ostream& to, const std::vector<PlannedRow>& plan) {
  std::vector<std::pair<std::string, std::pair<int, double>>> passes;
  double sum = 0;
  std::array<char, 64> text{};
  for (const PlannedRow& planned : plan) {
    sum += planned.seconds;
    if (passes.empty() || passes.back().first != planned.pass) {
      passes.push_back({planned.pass, {0, 0}});
    }
    ++passes.back().second.first;
    passes.back().second.second += planned.seconds;
    std::snprintf(text.data(), text.size(), "%-9s %7.1f s %7.1f s  ", planned.pass.c_str(),
                  planned.seconds, sum);
    to << text.data() << planned.name << "\n";
  }
  for (const auto& [pass, of_pass] : passes) {
    std::snprintf(text.data(), text.size(), "%-9s %5d rows %7.1f s\n", pass.c_str(), of_pass.first,
                  of_pass.second);
    to << text.data();
  }
  std::snprintf(text.data(), text.size(), "%-9s %5zu rows %7.1f s\n", "all", plan.size(), sum);
  to << text.data() << std::flush;
}

}  // namespace crossover::bench
