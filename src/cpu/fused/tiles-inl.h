// SPDX-License-Identifier: Apache-2.0
// Vectors of samples, and parts of a layer as tiles that fit in the registers.
// Compiled once for each target (Highway), so the guard opens again for each.
#if defined(CROSSOVER_CPU_FUSED_TILES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef CROSSOVER_CPU_FUSED_TILES_INL_H
#undef CROSSOVER_CPU_FUSED_TILES_INL_H
#else
#define CROSSOVER_CPU_FUSED_TILES_INL_H
#endif

// clang-format off
#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>

#include <hwy/highway.h>

#include "../base/vectors-inl.h"
#include "kernels.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace crossover::cpu::fused::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using cpu::HWY_NAMESPACE::kept;
using cpu::HWY_NAMESPACE::lanes;
using cpu::HWY_NAMESPACE::Lanes;
using cpu::HWY_NAMESPACE::loaded;
using cpu::HWY_NAMESPACE::Vector;
using cpu::HWY_NAMESPACE::Zeros;
static_assert(lanes <= floats_of_line);

using Four = hn::FixedTag<float, 4>;
using FourFloats = hn::Vec<Four>;

/// Vectors of samples that are computed together with a tile of features, so that sums, factors and
/// one sample fit in the registers: 32 of 512 bits, 16 on older processors.
inline constexpr int most_vectors = lanes == 16 ? 4 : 2;

/// Features of a tile: with one vector of each, more sums are needed to keep the multipliers busy.
template <int vectors>
constexpr int most_features = vectors == 1 ? 2 * tile : tile;

/// What a tile computes: `vectors` for each of `features`.
template <int features, int vectors>
class Sums {
 public:
  HWY_INLINE Vector& operator()(int feature, int vector) {
    return values_
        .vectors[static_cast<std::size_t>(feature) * vectors + static_cast<std::size_t>(vector)];
  }

 private:
  Zeros<static_cast<std::size_t>(features* vectors)> values_;
};

inline std::int64_t vectors_of(const Batch& batch) { return (batch.rows + lanes - 1) / lanes; }

/// Products go through so many inputs, or outputs, at once: their samples, of as many vectors as a
/// tile has, stay in the first cache while all tiles pass by.
inline constexpr std::int64_t block =
    32768 / (most_vectors * lanes * static_cast<int>(sizeof(float)));

/// Calls work(feature, vector) for each; unrolled, so that sums never leave the registers.
template <int features, int vectors, class Work>
HWY_INLINE void for_each(const Work& work) {
#pragma GCC unroll 8
  for (int f = 0; f < features; ++f) {
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) {
      work(f, v);
    }
  }
}

/// work(integral_constant<count>, first) for as many whole tiles as fit, then for the rest.
template <int most, class Work>
HWY_INLINE void for_each_part(std::int64_t begin, std::int64_t end, const Work& work) {
  for (; end - begin >= most; begin += most) {
    work(std::integral_constant<int, most>{}, begin);
  }
  if constexpr (most > 1) {
    if (begin < end) {
      for_each_part<most - 1>(begin, end, work);
    }
  }
}

/// work(begin, end) for each block of [0, count).
template <class Work>
HWY_INLINE void for_each_block(std::int64_t count, const Work& work) {
  for (std::int64_t begin = 0; begin < count; begin += block) {
    work(begin, std::min(count, begin + block));
  }
}

}  // namespace
}  // namespace crossover::cpu::fused::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
