// SPDX-License-Identifier: Apache-2.0
// How images lie: one layout from input to loss, which convolutions and loops of ours share.
#pragma once

#include <cstdint>
#include <oneapi/dnnl/dnnl.hpp>

#include "crossover/step.h"
#include "layout.h"

namespace crossover::cpu {

/// The layout of an image tensor [batch, channels, height, width] of a network that stores
/// `network_type`: f32 in blocks of as many channels as a vector holds, where they divide
/// (oneDNN's nChw16c, nChw8c); else channels last, as oneDNN's 16-bit convolutions want them.
Layout image_layout(const Tensor& image, Type network_type);
inline Layout image_layout(const Tensor& image) { return image_layout(image, image.type); }

/// Channels last, whatever the type.
dnnl::memory::desc channels_last(const Tensor& image);

/// An image in its image_layout() as loops of ours see it: [batch][blocks][pixels][width], where
/// the last are channels. Channels last is one block as wide as all channels.
struct ImageRows {
  std::int64_t batch = 0, blocks = 0, height = 0, width = 0;
  std::int64_t channels = 0;  ///< of a block, contiguous

  ImageRows(const Tensor& image, Type network_type);

  [[nodiscard]] std::int64_t pixels() const { return height * width; }
  [[nodiscard]] std::int64_t planes() const { return batch * blocks; }
};

}  // namespace crossover::cpu
