// SPDX-License-Identifier: Apache-2.0
// Loops over the places of a tensor: pixels or time steps.
#pragma once

#include "crossover/tensor.h"
#include "layout.h"
#include "threads.h"
#include "vector.h"

namespace crossover::cpu {

/// A tensor as it lies, [outer, places, inner], and the layout in which it does. What has one
/// number for all places lies plain, and that of a block of channels in the block's place.
struct LyingPlaces {
  explicit LyingPlaces(const Tensor& x) : of(x.shape) {
    if (!Places::is_sequence(x.shape)) {
      const ImageRows rows(x, x.type);
      of.outer = rows.planes();
      of.inner = rows.channels;
      layout = image_layout(x);
    }
  }

  /// Of an outer one: vectors.
  [[nodiscard]] std::int64_t parts() const { return (of.inner + lanes - 1) / lanes; }

  Places of;
  Layout layout;
};

/// body(part, element, shared) for each vector of what has one number for all places: the first
/// place's elements, and those of the shared numbers.
template <class Body>
void for_each_shared(int threads, const LyingPlaces& x, const Body& body) {
  const Places& of = x.of;
  split(
      threads, of.outer * x.parts(),
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const std::int64_t outer = i / x.parts();
          const std::int64_t first = i % x.parts() * lanes;
          const std::int64_t element = outer * of.count * of.inner + first;
          const std::int64_t shared = outer * of.inner + first;
          if (first + lanes <= of.inner) {
            body(WholeVector{}, element, shared);
          } else {
            body(PartOfVector{static_cast<std::size_t>(of.inner - first)}, element, shared);
          }
        }
      },
      1);
}

}  // namespace crossover::cpu
