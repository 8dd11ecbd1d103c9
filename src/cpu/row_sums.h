// SPDX-License-Identifier: Apache-2.0
// What loops over rows make of one: sums and the largest of its numbers.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "vector.h"

namespace crossover::cpu {

inline float sum_of_lanes(Floats sums) {
  std::array<float, lanes> at{};
  std::memcpy(at.data(), &sums, sizeof sums);
  for (std::size_t half = at.size() / 2; half > 0; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) {
      at[i] += at[i + half];
    }
  }
  return at[0];
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
  for (int i = 0; i < lanes; ++i) {
    largest = std::max(largest, of_lanes[i]);
  }
  return largest;
}

}  // namespace crossover::cpu
