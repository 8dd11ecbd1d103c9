// SPDX-License-Identifier: Apache-2.0
// The window that a convolution or a pooling slides over an image.
#pragma once

#include <cstdint>

namespace crossover {

/// A square window over the last two dimensions of [batch, channels, height, width].
struct Window {
  std::int64_t size = 1;     ///< rows, and columns
  std::int64_t stride = 1;   ///< from one position to the next, down and across
  std::int64_t padding = 0;  ///< around the image, on all four sides
  /// Rounds the number of positions up where they do not divide the image: the last window may
  /// stand over the edge and beyond the padding, but begins within the image or the padding before
  /// it (PyTorch's ceil_mode).
  bool ceil = false;
  std::int64_t dilation = 1;  ///< from one of its rows or columns to the next; pools have no other
};

/// Rows, and columns, of the image from a window's first to its last.
inline std::int64_t extent(const Window& window) { return window.dilation * (window.size - 1) + 1; }

/// How many positions a window has over `extent` rows or columns; below one where it does not fit.
std::int64_t positions(const Window& window, std::int64_t extent);

}  // namespace crossover
