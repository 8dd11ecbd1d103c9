// SPDX-License-Identifier: Apache-2.0
#include "multiply.h"

#include <algorithm>
#include <vector>

namespace crossover {

void multiply(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView a, MatrixView b, double* c,
              bool accumulate) {
  std::vector<double> transposed;
  if (b.column != 1) {
    transposed.resize(static_cast<std::size_t>(k * n));
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t p = 0; p < k; ++p) {
        transposed[static_cast<std::size_t>(p * n + j)] = b.data[p * b.row + j * b.column];
      }
    }
    b = {transposed.data(), n, 1};
  }
  const bool large = m * n * k > 100000;  // below, threads cost more than they bring
  constexpr std::int64_t depth = 64;      // rows of b, and
  constexpr std::int64_t width = 512;     // columns of b, that stay in the second-level cache
  constexpr std::int64_t unrolled = 4;    // rows of b that one pass over a row of c takes
#pragma omp parallel for schedule(static) if (large)
  for (std::int64_t i = 0; i < m; ++i) {
    if (!accumulate) {
      std::fill_n(c + i * n, n, 0.0);
    }
  }
  for (std::int64_t j0 = 0; j0 < n; j0 += width) {
    const std::int64_t columns = std::min(width, n - j0);
    for (std::int64_t p0 = 0; p0 < k; p0 += depth) {
      const std::int64_t p1 = std::min(k, p0 + depth);
#pragma omp parallel for schedule(static) if (large)
      for (std::int64_t i = 0; i < m; ++i) {
        double* to = c + i * n + j0;
        std::int64_t p = p0;
        const auto factor = [&](std::int64_t at) { return a.data[i * a.row + at * a.column]; };
        for (; p + unrolled <= p1; p += unrolled) {
          const double f0 = factor(p);
          const double f1 = factor(p + 1);
          const double f2 = factor(p + 2);
          const double f3 = factor(p + 3);
          const double* from = b.data + p * b.row + j0;
          for (std::int64_t j = 0; j < columns; ++j) {
            to[j] += f0 * from[j] + f1 * from[j + b.row] + f2 * from[j + 2 * b.row] +
                     f3 * from[j + 3 * b.row];
          }
        }
        for (; p < p1; ++p) {
          const double f = factor(p);
          const double* from = b.data + p * b.row + j0;
          for (std::int64_t j = 0; j < columns; ++j) {
            to[j] += f * from[j];
          }
        }
      }
    }
  }
}

}  // namespace crossover
