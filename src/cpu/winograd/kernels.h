// SPDX-License-Identifier: Apache-2.0
// Convolutions by Winograd's F(2x2, 3x3), for whichever vector instructions this processor has
// (Google Highway): a tile of 2x2 results comes from 4x4 inputs by 16 products where the sum as it
// stands takes 36. Lavin & Gray, "Fast Algorithms for Convolutional Neural Networks"
// (arXiv:1509.09308, 2015), equations 7 to 12; the gradient of the weights is the adjoint of the
// same. Its rounding is that of the plain sum, which larger tiles would not keep.
//
// Images are [batch][blocks][height][width][lanes]: a vector holds the channels of a block at one
// pixel. Tiles are counted across all images, row by row.
#pragma once

#include <cstdint>

namespace crossover::cpu::winograd {

/// Of the results that a tile gives, and of the inputs that it takes.
inline constexpr std::int64_t result_side = 2, input_side = 4;

/// The products of a tile, for each pair of channels: values that inputs and weights are
/// transformed to.
inline constexpr std::int64_t points = input_side * input_side;

/// Tiles that are transformed and multiplied together: with few channels, what they are transformed
/// to at a row of points stays in the first cache.
inline constexpr std::int64_t tiles_of_unit = 16;

/// From the values of a unit's tiles at a point to those at the next. A vector more than they are,
/// since a cache keeps what lies at distances of a power of two in the same few places.
constexpr std::int64_t floats_of_point(std::int64_t blocks, std::int64_t lanes) {
  return (blocks * tiles_of_unit + 1) * lanes;
}

struct Images {
  std::int64_t blocks = 0, height = 0, width = 0;
};

/// A convolution: windows of 3x3 that move by one pixel.
struct Geometry {
  std::int64_t batch = 0;
  Images in, out;
  std::int64_t padding = 0;  ///< 0 to 2

  [[nodiscard]] std::int64_t tiles_across() const {
    return (out.width + result_side - 1) / result_side;
  }
  [[nodiscard]] std::int64_t tiles_down() const {
    return (out.height + result_side - 1) / result_side;
  }
  [[nodiscard]] std::int64_t tiles() const { return batch * tiles_down() * tiles_across(); }
  [[nodiscard]] std::int64_t units() const { return (tiles() + tiles_of_unit - 1) / tiles_of_unit; }
};

/// Where the results come from and go.
struct Forward {
  Geometry geometry;
  const float* x = nullptr;
  const float* weights = nullptr;  ///< transformed, [points][out.blocks][in channels][lanes]
  const float* bias = nullptr;     ///< [out channels] or null
  bool relu = false;
  float* y = nullptr;
};

struct Gradient {
  Geometry geometry;
  const float* x = nullptr;
  const float* dy = nullptr;
};

/// Each computes some units of tiles, [begin, end). Units may be computed at the same time, with a
/// scratch of their own.
struct Kernels {
  std::int64_t lanes;
  void (*forward)(const Forward& pass, std::int64_t begin, std::int64_t end, float* scratch);
  /// Adds to `sums`, [points][in.blocks][out.blocks][lanes of in][lanes of out], the gradients of
  /// the transformed weights, and to `bias_sums`, [out channels] or null, those of the bias.
  void (*gradient)(const Gradient& pass, std::int64_t begin, std::int64_t end, float* scratch,
                   float* sums, float* bias_sums);

  /// Of a thread: a row of points of inputs and of products or gradients, and sums of products.
  [[nodiscard]] std::int64_t scratch_floats(const Geometry& geometry) const {
    return input_side * (floats_of_point(geometry.in.blocks, lanes) +
                         2 * floats_of_point(geometry.out.blocks, lanes));
  }
};

/// Those for the best instructions that this processor has and this build was made for.
const Kernels& best_kernels();

}  // namespace crossover::cpu::winograd
