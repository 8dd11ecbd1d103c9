// SPDX-License-Identifier: Apache-2.0
#include "differences.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "crossover/alive.h"
#include "crossover/verify.h"

namespace crossover {
namespace {

std::string scientific(double value) {
  std::ostringstream text;
  text.precision(3);
  text << value;
  return text.str();
}

}  // namespace

double norm(std::span<const double> values) {
  double squares = 0;
  for_each_index(std::ssize(values), [&](std::int64_t i) {
    const double v = values[static_cast<std::size_t>(i)];
    squares += v * v;
  });
  return std::sqrt(squares);
}

double distance(std::span<const double> got, std::span<const double> expected) {
  double squares = 0;
  for_each_index(std::ssize(got), [&](std::int64_t at) {
    const auto i = static_cast<std::size_t>(at);
    const double difference = got[i] - expected[i];
    squares += difference * difference;
  });
  return std::sqrt(squares);
}

double relative_error(std::span<const double> got, std::span<const double> expected) {
  return distance(got, expected) / std::max(norm(expected), 1e-30);
}

void take(double error, double tolerance, const std::string& what, double& largest) {
  if (!(error <= tolerance)) {
    throw Mismatch(what + " differs from the float64 reference by " + scientific(error) +
                       " (relative; tolerance " + scientific(tolerance) + ")",
                   error, tolerance);
  }
  largest = std::max(largest, error);
}

}  // namespace crossover
