// SPDX-License-Identifier: Apache-2.0
// Products of small matrices that lie in the caches, of whole tiles: gradients of narrow layers,
// and a head's queries, keys and values, copied to float32 and padded with zeros.
#pragma once

#include <cstdint>

#include "vector.h"

namespace crossover::cpu {

/// With two vectors across it fills half of the registers with sums.
inline constexpr int tile_rows = vector_bytes == 64 ? 8 : 4;
static_assert(lanes % tile_rows == 0);

constexpr std::int64_t whole(std::int64_t count, std::int64_t of) {
  return (count + of - 1) / of * of;
}

/// Element (r, k) of a factor lies at at[r * row + k * column].
struct Factor {
  const float* at;
  std::int64_t row, column;
};

/// Rows that lie `stride` apart.
template <class T>
struct RowsAt {
  T* at;
  std::int64_t stride;
};

template <int vectors>
inline void multiply_tile(const Factor& a, RowsAt<const float> b, std::int64_t k, RowsAt<float> c) {
  // NOLINTNEXTLINE(*-avoid-c-arrays): std::array's calls are not always gone
  Floats sums[tile_rows][vectors] = {};
  for (std::int64_t i = 0; i < k; ++i) {
    Floats of_b[vectors];  // NOLINT(*-avoid-c-arrays)
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) {
      of_b[v] = load(WholeVector{}, b.at + i * b.stride + std::int64_t{v} * lanes);
    }
#pragma GCC unroll 8
    for (int r = 0; r < tile_rows; ++r) {
      const float factor = a.at[r * a.row + i * a.column];  // all() would add it to zeros first
#pragma GCC unroll 2
      for (int v = 0; v < vectors; ++v) {
        sums[r][v] += factor * of_b[v];
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < tile_rows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) {
      store(WholeVector{}, sums[r][v], c.at + r * c.stride + std::int64_t{v} * lanes);
    }
  }
}

/// c [tile_rows, columns] = a [tile_rows, k] b [k, columns], of whole vectors.
inline void multiply_rows(const Factor& a, RowsAt<const float> b, std::int64_t k,
                          std::int64_t columns, RowsAt<float> c) {
  constexpr std::int64_t wide = std::int64_t{2} * lanes;
  std::int64_t at = 0;
  for (; at + wide <= columns; at += wide) {
    multiply_tile<2>(a, {b.at + at, b.stride}, k, {c.at + at, c.stride});
  }
  if (at < columns) {
    multiply_tile<1>(a, {b.at + at, b.stride}, k, {c.at + at, c.stride});
  }
}

}  // namespace crossover::cpu
