// SPDX-License-Identifier: Apache-2.0
#include "products.h"

#include <algorithm>
#include <array>
#include <vector>

#include "crossover/alive.h"

namespace crossover {

// ---- The usual structure of a fast product (Goto & van de Geijn 2008): panels of a and b are
// copied into the order in which a kernel reads them, which keeps a small block of c in registers.

namespace {

#if defined(__AVX512F__)
constexpr std::int64_t vector_bytes = 64;
#elif defined(__AVX__)
constexpr std::int64_t vector_bytes = 32;
#else
constexpr std::int64_t vector_bytes = 16;
#endif
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr std::int64_t block_rows = 8;  // of 32 registers, 24 hold c
#else
constexpr std::int64_t block_rows = 4;  // of 16 registers, 12 hold c
#endif
using Vector = double __attribute__((vector_size(vector_bytes)));
constexpr std::int64_t lanes = vector_bytes / static_cast<std::int64_t>(sizeof(double));
constexpr std::int64_t block_vectors = 3;
constexpr std::int64_t block_columns = block_vectors * lanes;

// A tile of c is one thread's work. Its panels stay in the second-level cache.
constexpr std::int64_t tile_rows = 128;
constexpr std::int64_t tile_columns = 192;
constexpr std::int64_t depth = 128;  // of a, columns; of b, rows
static_assert(tile_rows % block_rows == 0 && tile_columns % block_columns == 0);

constexpr std::int64_t rounded_up(std::int64_t value, std::int64_t to) {
  return (value + to - 1) / to * to;
}

/// Panels of `width` vectors of the operand, each of them element by element of the vectors'
/// `depth`. Vector i has its element p at from[i * vector + p * element]; vectors beyond `count`
/// are zero.
template <std::int64_t width>
void pack(std::int64_t count, std::int64_t deep, const double* from, std::int64_t vector,
          std::int64_t element, double* to) {
  for (std::int64_t i0 = 0; i0 < count; i0 += width, to += width * deep) {
    const double* const first = from + i0 * vector;
    if (i0 + width > count) {
      for (std::int64_t p = 0; p < deep; ++p) {
        for (std::int64_t i = 0; i < width; ++i) {
          to[p * width + i] = i0 + i < count ? first[i * vector + p * element] : 0;
        }
      }
    } else if (vector == 1) {
      for (std::int64_t p = 0; p < deep; ++p) {
        for (std::int64_t i = 0; i < width; ++i) {
          to[p * width + i] = first[i + p * element];
        }
      }
    } else {
      for (std::int64_t p = 0; p < deep; ++p) {
        for (std::int64_t i = 0; i < width; ++i) {
          to[p * width + i] = first[i * vector + p * element];
        }
      }
    }
  }
}

/// sums [block_rows, block_columns] = a panel of a by one of b.
void multiply_panels(std::int64_t deep, const double* a, const double* b, double* sums) {
  // NOLINTNEXTLINE(modernize-avoid-c-arrays): a template would drop what makes it a vector
  Vector sum[block_rows][block_vectors] = {};
  const auto* columns = reinterpret_cast<const Vector*>(b);
  for (std::int64_t p = 0; p < deep; ++p) {
#pragma GCC unroll 8
    for (std::int64_t i = 0; i < block_rows; ++i) {
#pragma GCC unroll 3
      for (std::int64_t j = 0; j < block_vectors; ++j) {
        sum[i][j] += a[p * block_rows + i] * columns[p * block_vectors + j];
      }
    }
  }
  auto* to = reinterpret_cast<Vector*>(sums);
#pragma GCC unroll 8
  for (std::int64_t i = 0; i < block_rows; ++i) {
#pragma GCC unroll 3
    for (std::int64_t j = 0; j < block_vectors; ++j) {
      to[i * block_vectors + j] = sum[i][j];
    }
  }
}

struct alignas(vector_bytes) Lanes {
  std::array<double, lanes> values;
};

/// Memory for `count` numbers, aligned for vectors.
std::vector<Lanes> aligned(std::int64_t count) {
  return std::vector<Lanes>(static_cast<std::size_t>(rounded_up(count, lanes) / lanes));
}

}  // namespace

void multiply(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView a, MatrixView b, double* c,
              bool accumulate) {
  if (k == 0 && !accumulate) {
    std::fill_n(c, m * n, 0.0);
  }
  const bool large = m * n * k > 100000;  // below, threads cost more than they bring
#pragma omp parallel if (large)
  {
    const std::int64_t deepest = std::clamp<std::int64_t>(k, 1, depth);
    auto a_memory = aligned(rounded_up(std::min(m, tile_rows), block_rows) * deepest);
    auto b_memory = aligned(rounded_up(std::min(n, tile_columns), block_columns) * deepest);
    double* const a_panels = a_memory.data()->values.data();
    double* const b_panels = b_memory.data()->values.data();
    alignas(vector_bytes) std::array<double, block_rows * block_columns> sums{};
#pragma omp for collapse(2) schedule(dynamic)
    for (std::int64_t i0 = 0; i0 < m; i0 += tile_rows) {
      for (std::int64_t j0 = 0; j0 < n; j0 += tile_columns) {
        const std::int64_t rows = std::min(tile_rows, m - i0);
        const std::int64_t columns = std::min(tile_columns, n - j0);
        for (std::int64_t p0 = 0; p0 < k; p0 += depth) {
          const std::int64_t deep = std::min(depth, k - p0);
          alive();
          pack<block_rows>(rows, deep, a.data + i0 * a.row + p0 * a.column, a.row, a.column,
                           a_panels);
          pack<block_columns>(columns, deep, b.data + p0 * b.row + j0 * b.column, b.column, b.row,
                              b_panels);
          const bool add = accumulate || p0 > 0;
          for (std::int64_t j = 0; j < columns; j += block_columns) {
            for (std::int64_t i = 0; i < rows; i += block_rows) {
              multiply_panels(deep, a_panels + i * deep, b_panels + j * deep, sums.data());
              const std::int64_t height = std::min(block_rows, rows - i);
              const std::int64_t width = std::min(block_columns, columns - j);
              for (std::int64_t row = 0; row < height; ++row) {
                const double* from = sums.data() + row * block_columns;
                double* to = c + (i0 + i + row) * n + j0 + j;
                for (std::int64_t column = 0; column < width; ++column) {
                  to[column] = (add ? to[column] : 0) + from[column];
                }
              }
            }
          }
        }
      }
    }
  }
}

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
