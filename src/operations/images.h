// SPDX-License-Identifier: Apache-2.0
// What operations on images [batch, channels, height, width] ask alike.
#pragma once

#include "crossover/window.h"
#include "fit.h"

namespace crossover {

/// The shape of tensor `id`; throws std::invalid_argument where it is no image.
inline const Shape& image(const Fit& fit, Id id) {
  const Tensor& tensor = fit.at(id);
  fit.require(tensor.shape.size() == 4, "tensor '" + tensor.name + "' " + to_string(tensor.shape) +
                                            " is not [batch, channels, height, width]");
  return tensor.shape;
}

/// What a window makes of an image, with `channels` channels. Throws std::invalid_argument where
/// the window does not fit.
inline Shape result_of(const Fit& fit, const Window& window, const Shape& image,
                       std::int64_t channels) {
  fit.require(window.size > 0 && window.stride > 0 && window.dilation > 0 && window.padding >= 0 &&
                  window.padding < extent(window),
              "a window needs a size, a stride and a dilation of at least one, and less padding "
              "than its extent");
  Shape result{image[0], channels, positions(window, image[2]), positions(window, image[3])};
  fit.require(result[2] > 0 && result[3] > 0,
              "a window of " + std::to_string(window.size) + " with padding " +
                  std::to_string(window.padding) + " does not fit into " + to_string(image));
  return result;
}

}  // namespace crossover
