// SPDX-License-Identifier: Apache-2.0
// The window that a convolution or a pooling slides over an image.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "crossover/tensor.h"

namespace crossover {

/// A number for each direction of an image; one given alone holds for both.
struct Pair {
  std::int64_t down, across;  ///< as [height, width]

  // NOLINTNEXTLINE(google-explicit-constructor): most windows are square, and say one number
  constexpr Pair(std::int64_t both) : down(both), across(both) {}
  constexpr Pair(std::int64_t of_rows, std::int64_t of_columns)
      : down(of_rows), across(of_columns) {}

  [[nodiscard]] constexpr bool is_square() const { return down == across; }
  [[nodiscard]] constexpr std::int64_t product() const { return down * across; }

  // clang-tidy 14 takes the comparison with zero that the compiler makes for ours.
  // NOLINTNEXTLINE(modernize-use-nullptr,readability-implicit-bool-conversion)
  auto operator<=>(const Pair&) const = default;
};

/// "3", or "1x5" where the directions differ.
std::string to_string(const Pair& pair);

/// A window in one of its directions; its members are those of Window.
struct Slide {
  std::int64_t size = 1, stride = 1, padding = 0, dilation = 1;
  bool ceil = false;
};

/// A window over the last two dimensions of [batch, channels, height, width].
struct Window {
  Pair size = 1;     ///< rows and columns
  Pair stride = 1;   ///< from one position to the next, down and across
  Pair padding = 0;  ///< around the image: above as below, on the left as on the right
  /// Rounds the number of positions up where they do not divide the image: the last window may
  /// stand over the edge and beyond the padding, but begins within the image or the padding before
  /// it (PyTorch's ceil_mode).
  bool ceil = false;
  Pair dilation = 1;  ///< from one of its rows or columns to the next; pools have no other

  [[nodiscard]] constexpr Slide down() const {
    return {size.down, stride.down, padding.down, dilation.down, ceil};
  }
  [[nodiscard]] constexpr Slide across() const {
    return {size.across, stride.across, padding.across, dilation.across, ceil};
  }
  [[nodiscard]] constexpr bool is_square() const {
    return size.is_square() && stride.is_square() && padding.is_square() && dilation.is_square();
  }
};

/// Rows or columns of the image from a window's first to its last.
inline std::int64_t extent(const Slide& slide) { return slide.dilation * (slide.size - 1) + 1; }

/// How many positions a window has over `extent` rows or columns; below one where it does not fit.
std::int64_t positions(const Slide& slide, std::int64_t extent);

/// [batch, channels, positions down, positions across] of images [batch, ..., height, width].
Shape windowed(const Window& window, const Shape& images, std::int64_t channels);

}  // namespace crossover
