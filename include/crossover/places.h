// SPDX-License-Identifier: Apache-2.0
// The places of a tensor that means are taken over and factors are shared by.
#pragma once

#include <cstdint>

#include "crossover/tensor.h"

namespace crossover {

/// The pixels of images [batch, channels, height, width], or the time steps of sequences [time,
/// batch, width]: in the plain layout both are [outer, places, inner], and what has one number for
/// all places is [outer, inner].
struct Places {
  explicit Places(const Shape& shape)
      : outer(is_sequence(shape) ? 1 : shape[0] * shape[1]),
        count(is_sequence(shape) ? shape[0] : shape[2] * shape[3]),
        inner(is_sequence(shape) ? shape[1] * shape[2] : 1) {}

  static bool is_sequence(const Shape& shape) { return shape.size() == 3; }

  /// Of an element of the tensor, that of what has one number for all places.
  [[nodiscard]] std::int64_t shared(std::int64_t element) const {
    return element / (count * inner) * inner + element % inner;
  }

  std::int64_t outer, count, inner;
};

/// [batch, channels] or [batch, width].
inline Shape without_places(const Shape& shape) {
  return Places::is_sequence(shape) ? Shape{shape[1], shape[2]} : Shape{shape[0], shape[1]};
}

}  // namespace crossover
