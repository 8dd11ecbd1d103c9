// SPDX-License-Identifier: Apache-2.0
// Which tensors lie channels-last on the device, and how elements get there and back. Nothing else
// knows: images and the weights of convolutions lie as cuDNN's tensor cores and our kernels like
// them best, everything else row-major.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "../kernels/launch.h"
#include "crossover/step.h"

namespace crossover::cuda {

/// How a tensor's elements lie on the device. upload() and download() take and give the plain
/// layout whatever it is.
enum class Layout {
  plain,          ///< row-major
  channels_last,  ///< [batch, height, width, channels]; weights [out, size, size, in]
};

/// By tensor: channels-last are the images and weights of operations on images, and what
/// elementwise operations, optimizers and views tie to them. Throws Unsupported where an operation
/// that needs rows of features reads an image.
std::vector<Layout> choose_layouts(const Workload& workload);

Arrangement arrangement_of(Layout layout, const Shape& shape);

/// Elements of so many bytes, from the plain layout to the arrangement.
void arrange(std::span<const std::byte> plain, std::byte* arranged, const Arrangement& arrangement,
             std::int64_t element_bytes);
/// And back.
void restore(const std::byte* arranged, std::span<std::byte> plain, const Arrangement& arrangement,
             std::int64_t element_bytes);

}  // namespace crossover::cuda
