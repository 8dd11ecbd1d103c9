// SPDX-License-Identifier: Apache-2.0
// The products of transformed tiles, at one point: [tiles][in] by [in][out] forward, and for the
// gradient of the weights [in][tiles] by [tiles][out].
// Compiled once for each target (Highway), so the guard opens again for each.
#if defined(CROSSOVER_CPU_WINOGRAD_PRODUCTS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef CROSSOVER_CPU_WINOGRAD_PRODUCTS_INL_H
#undef CROSSOVER_CPU_WINOGRAD_PRODUCTS_INL_H
#else
#define CROSSOVER_CPU_WINOGRAD_PRODUCTS_INL_H
#endif

// clang-format off
#include <algorithm>
#include <array>
#include <cstdint>

#include <hwy/highway.h>

#include "../base/vectors-inl.h"
#include "kernels.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace crossover::cpu::winograd::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using cpu::HWY_NAMESPACE::kept;
using cpu::HWY_NAMESPACE::lanes;
using cpu::HWY_NAMESPACE::Lanes;
using cpu::HWY_NAMESPACE::loaded;
using cpu::HWY_NAMESPACE::Vector;
using cpu::HWY_NAMESPACE::Zeros;

/// Sums that are computed together fill half of the registers: 32 of 512 bits, 16 on older
/// processors. They are of one or two blocks of outputs.
template <int blocks>
constexpr int rows_at_once = (lanes == 16 ? 16 : 8) / blocks;

/// `rows` times `blocks` sums, that never leave the registers in between.
template <int rows, int blocks>
class Sums {
 public:
  /// The sums go on from what lies there.
  HWY_INLINE void load(const float* from, std::int64_t block_stride) {
    for_each([&](int r, int b) {
      (*this)(r, b) = hn::Load(Lanes(), from + r * lanes + b * block_stride);
    });
  }
  HWY_INLINE void store(float* to, std::int64_t block_stride) {
    for_each([&](int r, int b) {
      hn::Store((*this)(r, b), Lanes(), to + r * lanes + b * block_stride);
    });
  }
  /// Adds factors[r * stride] times the vector of each block at `vectors`.
  HWY_INLINE void add(const float* factors, std::int64_t stride, const float* vectors,
                      std::int64_t block_stride) {
    std::array<Vector, blocks> of_block{};
#pragma GCC unroll 2
    for (int b = 0; b < blocks; ++b) {
      of_block[static_cast<std::size_t>(b)] = loaded(vectors + b * block_stride);
    }
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
      Vector factor = hn::Set(Lanes(), factors[r * stride]);
      if constexpr (blocks > 1) {
        factor = kept(factor);
      }
#pragma GCC unroll 2
      for (int b = 0; b < blocks; ++b) {
        (*this)(r, b) = hn::MulAdd(factor, of_block[static_cast<std::size_t>(b)], (*this)(r, b));
      }
    }
  }

 private:
  HWY_INLINE Vector& operator()(int row, int block) {
    return values_
        .vectors[static_cast<std::size_t>(row) * blocks + static_cast<std::size_t>(block)];
  }
  template <class Work>
  static HWY_INLINE void for_each(const Work& work) {
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 2
      for (int b = 0; b < blocks; ++b) {
        work(r, b);
      }
    }
  }

  Zeros<static_cast<std::size_t>(rows) * blocks> values_;
};

/// m of some tiles and `blocks` blocks of outputs: v [in_blocks][tiles_of_unit][lanes], weights
/// [blocks][in channels][lanes], m [blocks][tiles_of_unit][lanes].
template <int blocks>
HWY_INLINE void multiply_tiles(std::int64_t tiles, std::int64_t in_blocks, const float* v,
                               const float* weights, float* m) {
  constexpr int rows = rows_at_once<blocks>;
  static_assert(tiles_of_unit % rows == 0);  // tiles past the last one are computed and not used
  for (std::int64_t tile = 0; tile < tiles; tile += rows) {
    Sums<rows, blocks> sums;  // zeros
    for (std::int64_t block = 0; block < in_blocks; ++block) {
      const float* factors = v + (block * tiles_of_unit + tile) * lanes;
      const float* vectors = weights + block * lanes * lanes;
      for (std::int64_t channel = 0; channel < lanes; ++channel) {
        sums.add(factors + channel, lanes, vectors + channel * lanes, in_blocks * lanes * lanes);
      }
    }
    sums.store(m + tile * lanes, tiles_of_unit * lanes);
  }
}

/// The same for all blocks of outputs.
HWY_INLINE void multiply(std::int64_t tiles, std::int64_t in_blocks, std::int64_t out_blocks,
                         const float* v, const float* weights, float* m) {
  const std::int64_t of_block = in_blocks * lanes * lanes;
  std::int64_t block = 0;
  for (; block + 2 <= out_blocks; block += 2) {
    multiply_tiles<2>(tiles, in_blocks, v, weights + block * of_block,
                      m + block * tiles_of_unit * lanes);
  }
  if (block < out_blocks) {
    multiply_tiles<1>(tiles, in_blocks, v, weights + block * of_block,
                      m + block * tiles_of_unit * lanes);
  }
}

/// Adds to the gradients of one block of inputs and `blocks` of outputs, sums [blocks][lanes of
/// in][lanes of out]: v [tiles_of_unit][lanes], z [blocks][tiles_of_unit][lanes].
template <int blocks>
HWY_INLINE void add_gradient_of(std::int64_t tiles, const float* v, const float* z, float* sums) {
  constexpr int rows = std::min(rows_at_once<blocks>, static_cast<int>(lanes));
  for (std::int64_t channel = 0; channel < lanes; channel += rows) {
    Sums<rows, blocks> part;
    part.load(sums + channel * lanes, lanes * lanes);
    for (std::int64_t tile = 0; tile < tiles; ++tile) {
      part.add(v + tile * lanes + channel, 1, z + tile * lanes, tiles_of_unit * lanes);
    }
    part.store(sums + channel * lanes, lanes * lanes);
  }
}

/// The same for all blocks of inputs and of outputs: sums [in_blocks][out_blocks][lanes][lanes].
HWY_INLINE void add_gradient(std::int64_t tiles, std::int64_t in_blocks, std::int64_t out_blocks,
                             const float* v, const float* z, float* sums) {
  for (std::int64_t in = 0; in < in_blocks; ++in) {
    const float* of_block = v + in * tiles_of_unit * lanes;
    float* row = sums + in * out_blocks * lanes * lanes;
    std::int64_t out = 0;
    for (; out + 2 <= out_blocks; out += 2) {
      add_gradient_of<2>(tiles, of_block, z + out * tiles_of_unit * lanes,
                         row + out * lanes * lanes);
    }
    if (out < out_blocks) {
      add_gradient_of<1>(tiles, of_block, z + out * tiles_of_unit * lanes,
                         row + out * lanes * lanes);
    }
  }
}

}  // namespace
}  // namespace crossover::cpu::winograd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
