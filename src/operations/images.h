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
  const auto slides = [](const Slide& slide) {
    return slide.size > 0 && slide.stride > 0 && slide.dilation > 0 && slide.padding >= 0 &&
           slide.padding < extent(slide);
  };
  fit.require(slides(window.down()) && slides(window.across()),
              "a window needs a size, a stride and a dilation of at least one, and less padding "
              "than its extent");
  Shape result = windowed(window, image, channels);
  fit.require(result[2] > 0 && result[3] > 0, "a window of " + to_string(window.size) +
                                                  " with padding " + to_string(window.padding) +
                                                  " does not fit into " + to_string(image));
  return result;
}

}  // namespace crossover
