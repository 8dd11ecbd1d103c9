// SPDX-License-Identifier: Apache-2.0
// The elements of one channel of images [batch, channels, height, width].
#pragma once

#include <cstdint>

#include "crossover/tensor.h"

#include "crossover/alive.h"

namespace crossover {

/// body(first, end) for the channel in each image: its elements there are [first, end).
template <class Body>
void for_each_part(const Shape& images, std::int64_t channel, const Body& body) {
  const std::int64_t pixels = images[2] * images[3];
  for (std::int64_t image = 0; image < images[0]; ++image) {
    const std::int64_t first = (image * images[1] + channel) * pixels;
    body(first, first + pixels);
    alive();
  }
}

/// The sum of value(i) over the elements of the channel.
template <class Value>
double sum_of_channel(const Shape& images, std::int64_t channel, const Value& value) {
  double sum = 0;
  for_each_part(images, channel, [&](std::int64_t first, std::int64_t end) {
    double part = 0;
#pragma omp simd reduction(+ : part)
    for (std::int64_t i = first; i < end; ++i) {
      part += value(i);
    }
    sum += part;
  });
  return sum;
}

}  // namespace crossover
