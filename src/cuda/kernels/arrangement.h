// SPDX-License-Identifier: Apache-2.0
// How images lie, and where the elements of those that lie channels-last are in the plain layout:
// for the host, for kernels, for plans.
#pragma once

#include <cstdint>

#include "crossover/host_device.h"

namespace crossover::cuda {

/// How a tensor's elements lie on the device. upload() and download() take and give the plain
/// layout whatever it is.
enum class Layout {
  plain,          ///< row-major: images [batch, channels, height, width]
  channels_last,  ///< [batch, height, width, channels]; weights [out, size, size, in]
};

/// Images as what is done by channel sees them, [outer, channels, inner]: channels-last, outer is
/// the pixels of all images and inner 1; plain, outer is images and inner the pixels of one.
struct ChannelView {
  std::int64_t outer = 0, channels = 0, inner = 1;

  /// Numbers of a channel.
  [[nodiscard]] CROSSOVER_HOST_DEVICE std::int64_t rows() const { return outer * inner; }
};

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
