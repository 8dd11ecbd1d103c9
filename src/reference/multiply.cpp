// SPDX-License-Identifier: Apache-2.0
// The usual structure of a fast product (Goto & van de Geijn 2008): panels of a and b are copied
// into the order in which a kernel reads them, which keeps a small block of c in registers.
#include "multiply.h"

#include <algorithm>
#include <array>
#include <vector>

#include "crossover/alive.h"

namespace crossover {
namespace {

#if defined(__AVX512F__)
constexpr std::int64_t vector_bytes = 64;
#elif defined(__AVX__)
constexpr std::int64_t vector_bytes = 32;
#else
constexpr std::int64_t vector_bytes = 16;
#endif
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr std::int64_t block_rows = 8;  // of 32 registers, 24 hold c
#else
constexpr std::int64_t block_rows = 4;  // of 16 registers, 12 hold c
#endif
using Vector = double __attribute__((vector_size(vector_bytes)));
constexpr std::int64_t lanes = vector_bytes / static_cast<std::int64_t>(sizeof(double));
constexpr std::int64_t block_vectors = 3;
constexpr std::int64_t block_columns = block_vectors * lanes;

// A tile of c is one thread's work. Its panels stay in the second-level cache.
constexpr std::int64_t tile_rows = 128;
constexpr std::int64_t tile_columns = 192;
constexpr std::int64_t depth = 128;  // of a, columns; of b, rows
static_assert(tile_rows % block_rows == 0 && tile_columns % block_columns == 0);

constexpr std::int64_t rounded_up(std::int64_t value, std::int64_t to) {
  return (value + to - 1) / to * to;
}

/// Panels of `width` vectors of the operand, each of them element by element of the vectors'
/// `depth`. Vector i has its element p at from[i * vector + p * element]; vectors beyond `count`
/// are zero.
template <std::int64_t width>
void pack(std::int64_t count, std::int64_t deep, const double* from, std::int64_t vector,
          std::int64_t element, double* to) {
  for (std::int64_t i0 = 0; i0 < count; i0 += width, to += width * deep) {
    const double* const first = from + i0 * vector;
    if (i0 + width > count) {
      for (std::int64_t p = 0; p < deep; ++p) {
        for (std::int64_t i = 0; i < width; ++i) {
          to[p * width + i] = i0 + i < count ? first[i * vector + p * element] : 0;
        }
      }
    } else if (vector == 1) {
      for (std::int64_t p = 0; p < deep; ++p) {
        for (std::int64_t i = 0; i < width; ++i) {
          to[p * width + i] = first[i + p * element];
        }
      }
    } else {
      for (std::int64_t p = 0; p < deep; ++p) {
        for (std::int64_t i = 0; i < width; ++i) {
          to[p * width + i] = first[i * vector + p * element];
        }
      }
    }
  }
}

/// sums [block_rows, block_columns] = a panel of a by one of b.
void multiply_panels(std::int64_t deep, const double* a, const double* b, double* sums) {
  // NOLINTNEXTLINE(modernize-avoid-c-arrays): a template would drop what makes it a vector
  Vector sum[block_rows][block_vectors] = {};
  const auto* columns = reinterpret_cast<const Vector*>(b);
  for (std::int64_t p = 0; p < deep; ++p) {
#pragma GCC unroll 8
    for (std::int64_t i = 0; i < block_rows; ++i) {
#pragma GCC unroll 3
      for (std::int64_t j = 0; j < block_vectors; ++j) {
        sum[i][j] += a[p * block_rows + i] * columns[p * block_vectors + j];
      }
    }
  }
  auto* to = reinterpret_cast<Vector*>(sums);
#pragma GCC unroll 8
  for (std::int64_t i = 0; i < block_rows; ++i) {
#pragma GCC unroll 3
    for (std::int64_t j = 0; j < block_vectors; ++j) {
      to[i * block_vectors + j] = sum[i][j];
    }
  }
}

struct alignas(vector_bytes) Lanes {
  std::array<double, lanes> values;
};

/// Memory for `count` numbers, aligned for vectors.
std::vector<Lanes> aligned(std::int64_t count) {
  return std::vector<Lanes>(static_cast<std::size_t>(rounded_up(count, lanes) / lanes));
}

}  // namespace

void multiply(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView a, MatrixView b, double* c,
              bool accumulate) {
  if (k == 0 && !accumulate) {
    std::fill_n(c, m * n, 0.0);
  }
  const bool large = m * n * k > 100000;  // below, threads cost more than they bring
#pragma omp parallel if (large)
  {
    const std::int64_t deepest = std::clamp<std::int64_t>(k, 1, depth);
    auto a_memory = aligned(rounded_up(std::min(m, tile_rows), block_rows) * deepest);
    auto b_memory = aligned(rounded_up(std::min(n, tile_columns), block_columns) * deepest);
    double* const a_panels = a_memory.data()->values.data();
    double* const b_panels = b_memory.data()->values.data();
    alignas(vector_bytes) std::array<double, block_rows * block_columns> sums{};
#pragma omp for collapse(2) schedule(dynamic)
    for (std::int64_t i0 = 0; i0 < m; i0 += tile_rows) {
      for (std::int64_t j0 = 0; j0 < n; j0 += tile_columns) {
        const std::int64_t rows = std::min(tile_rows, m - i0);
        const std::int64_t columns = std::min(tile_columns, n - j0);
        for (std::int64_t p0 = 0; p0 < k; p0 += depth) {
          const std::int64_t deep = std::min(depth, k - p0);
          alive();
          pack<block_rows>(rows, deep, a.data + i0 * a.row + p0 * a.column, a.row, a.column,
                           a_panels);
          pack<block_columns>(columns, deep, b.data + p0 * b.row + j0 * b.column, b.column, b.row,
                              b_panels);
          const bool add = accumulate || p0 > 0;
          for (std::int64_t j = 0; j < columns; j += block_columns) {
            for (std::int64_t i = 0; i < rows; i += block_rows) {
              multiply_panels(deep, a_panels + i * deep, b_panels + j * deep, sums.data());
              const std::int64_t height = std::min(block_rows, rows - i);
              const std::int64_t width = std::min(block_columns, columns - j);
              for (std::int64_t row = 0; row < height; ++row) {
                const double* from = sums.data() + row * block_columns;
                double* to = c + (i0 + i + row) * n + j0 + j;
                for (std::int64_t column = 0; column < width; ++column) {
                  to[column] = (add ? to[column] : 0) + from[column];
                }
              }
            }
          }
        }
      }
    }
  }
}

}  // namespace crossover
