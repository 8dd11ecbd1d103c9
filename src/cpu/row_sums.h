// SPDX-License-Identifier: Apache-2.0
// What loops over rows make of one, or of as many as a vector has lanes: sums and the largest of
// its numbers.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <type_traits>
#include <utility>

#include "vector.h"

namespace crossover::cpu {

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
    std::array<Floats, length / 2> pairs{};
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
  std::array<std::array<Floats, lanes>, sums> of_rows{};
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

}  // namespace crossover::cpu
