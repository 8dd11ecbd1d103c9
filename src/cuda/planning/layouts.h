// SPDX-License-Identifier: Apache-2.0
// Which tensors lie channels-last on the device, and how elements get there and back. Nothing else
// knows: images and the weights of convolutions lie as cuDNN likes them best, everything else
// row-major.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "../kernels/launch.h"
#include "crossover/step.h"

namespace crossover::cuda {

/// Of images. Tensor cores take channels-last; f32 has none of their plans, and those that it has
/// convert channels-last images to the plain layout and back within their workspace
/// (docs/method/backends.md has how much).
constexpr Layout image_layout(Precision precision) {
  return precision == Precision::f32 ? Layout::plain : Layout::channels_last;
}

/// By tensor: as image_layout() says lie the images and weights of operations on images, and what
/// elementwise operations, optimizers and views tie to them. Throws Unsupported where an operation
/// that needs rows of features reads an image.
std::vector<Layout> choose_layouts(const Workload& workload, Precision precision);

Arrangement arrangement_of(Layout layout, const Shape& shape);

/// Elements of so many bytes, from the plain layout to the arrangement.
void arrange(std::span<const std::byte> plain, std::byte* arranged, const Arrangement& arrangement,
             std::int64_t element_bytes);
/// And back.
void restore(const std::byte* arranged, std::span<std::byte> plain, const Arrangement& arrangement,
             std::int64_t element_bytes);

}  // namespace crossover::cuda
