// SPDX-License-Identifier: Apache-2.0
// How far what a program computed is from the reference.
#pragma once

#include <cstdint>
#include <iterator>
#include <span>
#include <string>

#include "crossover/alive.h"

namespace crossover {

/// Squares of what separates values from those that are expected, and of these.
struct Separation {
  double distance = 0, norm = 0;
};

inline Separation operator+(const Separation& one, const Separation& other) {
  return {one.distance + other.distance, one.norm + other.norm};
}

/// Of what has an operator[]; NaN anywhere gives NaN.
template <class Got>
Separation separation(const Got& got, std::span<const double> expected) {
  Separation sum;
  for_each_index(std::ssize(expected), [&](std::int64_t at) {
    const auto i = static_cast<std::size_t>(at);
    const double difference = got[i] - expected[i];
    sum.distance += difference * difference;
    sum.norm += expected[i] * expected[i];
  });
  return sum;
}

/// Euclidean.
double norm(std::span<const double> values);

/// |got - expected|, where NaN anywhere gives NaN.
double distance(std::span<const double> got, std::span<const double> expected);

/// distance() over |expected|.
double relative_error(std::span<const double> got, std::span<const double> expected);

/// Keeps the larger error; throws Mismatch where it is over the tolerance, or no number at all.
void take(double error, double tolerance, const std::string& what, double& largest);

}  // namespace crossover
