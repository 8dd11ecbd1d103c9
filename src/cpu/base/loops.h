// SPDX-License-Identifier: Apache-2.0
// Loops by vectors, over the rows and over the places of a tensor.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <type_traits>
#include <utility>

#include "crossover/tensor.h"
#include "layout.h"
#include "threads.h"
#include "vector.h"

namespace crossover::cpu {

// ---- Rows: what loops over them make of one, or of as many as a vector has lanes: sums and the
// largest of its numbers.

/// What combine(float, float) makes of all lanes, by halves.
template <class Combine>
inline float across_lanes(Floats values, const Combine& combine) {
  std::array<float, lanes> at{};
  std::memcpy(at.data(), &values, sizeof values);
  for (std::size_t half = at.size() / 2; half > 0; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) {
      at[i] = combine(at[i], at[i + half]);
    }
  }
  return at[0];
}

inline float sum_of_lanes(Floats sums) { return across_lanes(sums, std::plus<>()); }

inline float largest_of_lanes(Floats values) {
  return across_lanes(values, [](float a, float b) { return a > b ? a : b; });
}

/// The sums of each of term(part, first) over a row.
template <std::size_t sums, class Term>
std::array<float, sums> sums_of_row(std::int64_t width, const Term& term) {
  std::array<Floats, sums> of_lanes{};
  std::array<float, sums> rest{};
  for_each_vector(width, [&](auto part, std::int64_t first) {
    const std::array<Floats, sums> terms = term(part, first);
    for (std::size_t s = 0; s < sums; ++s) {
      if constexpr (std::is_same_v<decltype(part), WholeVector>) {
        of_lanes[s] += terms[s];
      } else {  // its other lanes hold no terms
        for (std::size_t i = 0; i < part.size(); ++i) {
          rest[s] += terms[s][i];
        }
      }
    }
  });
  for (std::size_t s = 0; s < sums; ++s) {
    rest[s] += sum_of_lanes(of_lanes[s]);
  }
  return rest;
}

template <class T>
float largest_of(const T* row, std::int64_t count) {
  float largest = widened(row[0]);
  Floats of_lanes = all(largest);
  for_each_vector(count, [&](auto part, std::int64_t i) {
    const Floats values = load(part, row + i);
    if constexpr (std::is_same_v<decltype(part), WholeVector>) {
      of_lanes = where(values > of_lanes, values, of_lanes);
    } else {
      for (std::size_t lane = 0; lane < part.size(); ++lane) {
        largest = std::max(largest, values[lane]);
      }
    }
  });
  return std::max(largest, largest_of_lanes(of_lanes));
}

/// Of both vectors the first, or the second, half of each piece of so many lanes.
template <std::size_t length, bool second, std::size_t... lane>
inline Floats halves(Floats a, Floats b, std::index_sequence<lane...> /*lanes*/) {
  constexpr std::size_t half = length / 2;
  return __builtin_shufflevector(a, b,
                                 (lane / half * length + lane % half + (second ? half : 0))...);
}

/// Lane i of the result is what combine(Floats, Floats) makes of all lanes of rows[i].
template <std::size_t length = lanes, class Combine>
inline Floats across(const std::array<Floats, length>& rows, const Combine& combine) {
  if constexpr (length == 1) {
    return rows[0];
  } else {
    constexpr auto all_lanes = std::make_index_sequence<lanes>();
    std::array<Floats, length / 2> pairs;  // NOLINT(*-member-init): each is written
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      pairs[i] = combine(halves<length, false>(rows[2 * i], rows[2 * i + 1], all_lanes),
                         halves<length, true>(rows[2 * i], rows[2 * i + 1], all_lanes));
    }
    return across<length / 2>(pairs, combine);
  }
}

/// Lane r holds the sums over row r, of as many rows as there are lanes, of term(part, first) where
/// term is what terms_of(r) returns.
template <std::size_t sums, class TermsOf>
inline std::array<Floats, sums> sums_of_rows(std::int64_t width, const TermsOf& terms_of) {
  // NOLINTNEXTLINE(*-member-init): zeros would take a tenth of the time
  std::array<std::array<Floats, lanes>, sums> of_rows;
  for (std::int64_t r = 0; r < lanes; ++r) {
    const auto term = terms_of(r);
    std::array<Floats, sums> of_row{};
    for_each_vector(width, [&](auto part, std::int64_t first) {
      const std::array<Floats, sums> terms = term(part, first);
      for (std::size_t s = 0; s < sums; ++s) {
        of_row[s] += only(part, terms[s]);
      }
    });
    for (std::size_t s = 0; s < sums; ++s) {
      of_rows[s][static_cast<std::size_t>(r)] = of_row[s];
    }
  }
  std::array<Floats, sums> found{};
  for (std::size_t s = 0; s < sums; ++s) {
    found[s] = across(of_rows[s], [](Floats a, Floats b) { return a + b; });
  }
  return found;
}

/// Calls work(row_of) for as many rows of [begin, end) at once as there are lanes: row_of(r) is
/// the row of lane r. Behind the last row that is the last row again, whose results are stored
/// again.
template <class Work>
inline void for_each_rows(std::int64_t begin, std::int64_t end, const Work& work) {
  for (std::int64_t first = begin; first < end; first += lanes) {
    work([=](std::int64_t r) { return std::min(first + r, end - 1); });
  }
}

// ---- Rows of sequences, which lie time first: [time, batch].

/// Time step and sample of a row, and of those that follow it: without a division for each.
class RowOfSequences {
 public:
  RowOfSequences(std::int64_t row, std::int64_t batch)
      : batch_(batch), time_(row / batch), sample_(row % batch) {}

  [[nodiscard]] std::int64_t time() const { return time_; }
  [[nodiscard]] std::int64_t sample() const { return sample_; }
  void next() {
    if (++sample_ == batch_) {
      sample_ = 0;
      ++time_;
    }
  }

 private:
  std::int64_t batch_, time_, sample_;
};

// ---- Places: pixels or time steps.

/// A tensor as it lies, [outer, places, inner], and the layout in which it does. What has one
/// number for all places lies plain, and that of a block of channels in the block's place.
struct LyingPlaces {
  explicit LyingPlaces(const Tensor& x) : of(x.shape) {
    if (!Places::is_sequence(x.shape)) {
      const ImageRows rows(x, x.type);
      of.outer = rows.planes();
      of.inner = rows.channels;
      layout = image_layout(x);
    }
  }

  /// Of an outer one: vectors.
  [[nodiscard]] std::int64_t parts() const { return (of.inner + lanes - 1) / lanes; }

  Places of;
  Layout layout;
};

/// body(part, element, shared) for each vector of what has one number for all places: the first
/// place's elements, and those of the shared numbers.
template <class Body>
void for_each_shared(int threads, const LyingPlaces& x, const Body& body) {
  const Places& of = x.of;
  split(
      threads, of.outer * x.parts(),
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const std::int64_t outer = i / x.parts();
          const std::int64_t first = i % x.parts() * lanes;
          const std::int64_t element = outer * of.count * of.inner + first;
          const std::int64_t shared = outer * of.inner + first;
          if (first + lanes <= of.inner) {
            body(WholeVector{}, element, shared);
          } else {
            body(PartOfVector{static_cast<std::size_t>(of.inner - first)}, element, shared);
          }
        }
      },
      1);
}

}  // namespace crossover::cpu
