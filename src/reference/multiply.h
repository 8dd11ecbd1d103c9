// SPDX-License-Identifier: Apache-2.0
// The reference's matrix product in float64.
#pragma once

#include <cstdint>

namespace crossover {

/// A matrix as a product reads it: element (i, j) lies at data[i * row + j * column].
struct MatrixView {
  const double* data;
  std::int64_t row, column;
};

/// c [m, n] (+)= a [m, k] b [k, n], c row-major. Blocked and threaded, because whole epochs are
/// checked with it.
void multiply(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView a, MatrixView b, double* c,
              bool accumulate);

}  // namespace crossover
