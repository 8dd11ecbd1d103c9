// SPDX-License-Identifier: Apache-2.0
#include "windows.h"

#include <algorithm>

namespace crossover {
namespace {

// Enough for a fast product, and not so much that a block of windows leaves the caches.
constexpr std::int64_t wanted_positions = 256;

constexpr std::int64_t large = 100000;  // elements; below, threads cost more than they bring

/// The first position p with p * stride + offset >= at.
std::int64_t first_position(std::int64_t at, std::int64_t offset, std::int64_t stride) {
  return std::max<std::int64_t>(0, (at - offset + stride - 1) / stride);
}

}  // namespace

Windows::Windows(const Shape& images, const Window& window)
    : window_(window),
      channels_(images[1]),
      height_(images[2]),
      width_(images[3]),
      lines_(crossover::positions(window.down(), height_)),
      columns_(crossover::positions(window.across(), width_)),
      places_(channels_ * window.size.product()) {
  const std::int64_t together = std::max<std::int64_t>(1, wanted_positions / (lines_ * columns_));
  const std::int64_t lines = std::clamp<std::int64_t>(wanted_positions / columns_, 1, lines_);
  for (std::int64_t image = 0; image < images[0]; image += together) {
    auto& group = groups_.emplace_back();
    for (std::int64_t line = 0; line < lines_; line += lines) {
      group.push_back({.image = image,
                       .images = std::min(together, images[0] - image),
                       .line = line,
                       .lines = std::min(lines, lines_ - line)});
    }
  }
}

/// For each line of the block run(where in the images the place is at the first column whose window
/// has it in the image, that column, how many there are); none where it is in the padding.
template <class Run>
void Windows::for_each_run(const WindowBlock& block, std::int64_t place, const Run& run) const {
  const Pair& size = window_.size;
  const std::int64_t stride = window_.stride.across;
  const std::int64_t channel = place / size.product();
  const std::int64_t down =
      window_.dilation.down * (place / size.across % size.down) - window_.padding.down;
  const std::int64_t across =
      window_.dilation.across * (place % size.across) - window_.padding.across;
  const std::int64_t first = std::min(columns_, first_position(0, across, stride));
  const std::int64_t end = std::clamp(first_position(width_, across, stride), first, columns_);
  for (std::int64_t image = block.image; image < block.image + block.images; ++image) {
    for (std::int64_t line = block.line; line < block.line + block.lines; ++line) {
      const std::int64_t row = line * window_.stride.down + down;
      const bool inside = row >= 0 && row < height_;
      const std::int64_t from =
          ((image * channels_ + channel) * height_ + row) * width_ + first * stride + across;
      run(inside ? from : 0, first, inside ? end - first : 0);
    }
  }
}

void Windows::lay_out(const WindowBlock& block, const double* images, double* to) const {
  const std::int64_t of_place = positions(block);
  const std::int64_t stride = window_.stride.across;
#pragma omp parallel for schedule(static) if (places_ * of_place > large)
  for (std::int64_t place = 0; place < places_; ++place) {
    double* line = to + place * of_place;
    for_each_run(block, place, [&](std::int64_t from, std::int64_t column, std::int64_t count) {
      std::fill_n(line, column, 0.0);
      if (stride == 1) {
        std::copy_n(images + from, count, line + column);
      } else {
        for (std::int64_t i = 0; i < count; ++i) {
          line[column + i] = images[from + i * stride];
        }
      }
      std::fill(line + column + count, line + columns_, 0.0);
      line += columns_;
    });
  }
}

void Windows::add_back(const WindowBlock& block, const double* from, double* images) const {
  const std::int64_t of_place = positions(block);
  const std::int64_t of_channel = window_.size.product();
  const std::int64_t stride = window_.stride.across;
#pragma omp parallel for schedule(static) if (places_ * of_place > large)
  for (std::int64_t channel = 0; channel < channels_; ++channel) {
    for (std::int64_t place = channel * of_channel; place < (channel + 1) * of_channel; ++place) {
      const double* line = from + place * of_place;
      for_each_run(block, place, [&](std::int64_t to, std::int64_t column, std::int64_t count) {
        for (std::int64_t i = 0; i < count; ++i) {
          images[to + i * stride] += line[column + i];
        }
        line += columns_;
      });
    }
  }
}

/// copy(place in the results, place in the matrix, how many).
template <class Copy>
void Windows::for_each_part(const WindowBlock& block, std::int64_t channels,
                            const Copy& copy) const {
  const std::int64_t count = block.lines * columns_;
  for (std::int64_t channel = 0; channel < channels; ++channel) {
    for (std::int64_t image = 0; image < block.images; ++image) {
      copy((((block.image + image) * channels + channel) * lines_ + block.line) * columns_,
           (channel * block.images + image) * count, count);
    }
  }
}

void Windows::take(const WindowBlock& block, std::int64_t channels, const double* results,
                   double* matrix) const {
  for_each_part(block, channels, [&](std::int64_t from, std::int64_t to, std::int64_t count) {
    std::copy_n(results + from, count, matrix + to);
  });
}

void Windows::put(const WindowBlock& block, std::int64_t channels, const double* matrix,
                  double* results) const {
  for_each_part(block, channels, [&](std::int64_t to, std::int64_t from, std::int64_t count) {
    std::copy_n(matrix + from, count, results + to);
  });
}

}  // namespace crossover
