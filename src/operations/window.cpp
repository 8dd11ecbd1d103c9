// SPDX-License-Identifier: Apache-2.0
#include "crossover/window.h"

namespace crossover {

std::string to_string(const Pair& pair) {
  const std::string rows = std::to_string(pair.down);
  return pair.is_square() ? rows : rows + "x" + std::to_string(pair.across);
}

std::int64_t positions(const Slide& slide, std::int64_t extent) {
  const std::int64_t room = extent + 2 * slide.padding - crossover::extent(slide);
  if (room < 0) {
    return 0;
  }
  if (!slide.ceil) {
    return room / slide.stride + 1;
  }
  const std::int64_t count = (room + slide.stride - 1) / slide.stride + 1;
  const bool last_begins_outside = (count - 1) * slide.stride >= extent + slide.padding;
  return last_begins_outside ? count - 1 : count;
}

Shape windowed(const Window& window, const Shape& images, std::int64_t channels) {
  return {images[0], channels, positions(window.down(), images[2]),
          positions(window.across(), images[3])};
}

}  // namespace crossover
