// SPDX-License-Identifier: Apache-2.0
// Matrix products in float64, and convolutions as such.
#pragma once

#include <cstdint>
#include <vector>

#include "crossover/tensor.h"

namespace crossover {

// ---- The reference's matrix product in float64.

/// A matrix as a product reads it: element (i, j) lies at data[i * row + j * column].
struct MatrixView {
  const double* data;
  std::int64_t row, column;
};

/// c [m, n] (+)= a [m, k] b [k, n], c row-major. Blocked and threaded, because whole epochs are
/// checked with it.
void multiply(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView a, MatrixView b, double* c,
              bool accumulate);

// ---- Windows of images laid out as the columns of a matrix, so that a convolution becomes a
// matrix product.

/// A few lines of what a convolution makes of a few images: whole images, unless they are large.
struct WindowBlock {
  std::int64_t image, images;  ///< the first, and how many
  std::int64_t line, lines;    ///< of each of them
};

class Windows {
 public:
  /// Over images [batch, channels, height, width].
  Windows(const Shape& images, const Window& window);

  [[nodiscard]] std::int64_t places() const { return places_; }  ///< in a window
  [[nodiscard]] std::int64_t positions(const WindowBlock& block) const {
    return block.images * block.lines * columns_;
  }

  /// The blocks in groups; no image is in two groups. They depend on nothing but the shapes.
  [[nodiscard]] const std::vector<std::vector<WindowBlock>>& groups() const { return groups_; }

  /// to [places, positions] = the windows of the block; 0 in the padding.
  void lay_out(const WindowBlock& block, const double* images, double* to) const;

  /// Adds from [places, positions] to the images, what is in the padding to none.
  void add_back(const WindowBlock& block, const double* from, double* images) const;

  /// matrix [channels, positions] of the block = its part of results [batch, channels, lines,
  /// columns], and the other way round.
  void take(const WindowBlock& block, std::int64_t channels, const double* results,
            double* matrix) const;
  void put(const WindowBlock& block, std::int64_t channels, const double* matrix,
           double* results) const;

 private:
  template <class Run>
  void for_each_run(const WindowBlock& block, std::int64_t place, const Run& run) const;
  template <class Copy>
  void for_each_part(const WindowBlock& block, std::int64_t channels, const Copy& copy) const;

  Window window_;
  std::int64_t channels_, height_, width_;
  std::int64_t lines_, columns_;  ///< positions down and across
  std::int64_t places_;
  std::vector<std::vector<WindowBlock>> groups_;
};

}  // namespace crossover
