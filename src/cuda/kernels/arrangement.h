// SPDX-License-Identifier: Apache-2.0
// Where the elements of images that lie channels-last are in the plain layout: for the host, for
// kernels, for plans.
#pragma once

#include <cstdint>

#include "crossover/host_device.h"

namespace crossover::cuda {

/// Of [.., channels, pixels], each block of channels times pixels lies as [pixels, channels].
/// 1 and 1: row-major.
struct Arrangement {
  std::int64_t channels = 1, pixels = 1;

  [[nodiscard]] bool is_plain() const { return channels == 1 || pixels == 1; }
  friend bool operator==(const Arrangement&, const Arrangement&) = default;
};

/// [.., outer, inner] at i is [.., inner, outer] at this. Index is 32 or 64 bits wide: a GPU
/// divides the short ones several times faster.
template <class Index>
CROSSOVER_HOST_DEVICE inline Index swapped(Index i, Index outer, Index inner) {
  const Index k = i % inner;
  const Index rest = i / inner;
  const Index o = rest % outer;
  return (rest / outer * inner + k) * outer + o;
}

/// The place in the plain layout of what lies at i.
inline std::int64_t plain_index(std::int64_t i, const Arrangement& arrangement) {
  return swapped(i, arrangement.pixels, arrangement.channels);
}

}  // namespace crossover::cuda
