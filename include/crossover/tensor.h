// SPDX-License-Identifier: Apache-2.0
// A tensor as a Workload knows it, and what slides over images and sequences. No memory, no device.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace crossover {

// ---- A tensor: shape, storage type and role.

/// Extents from the slowest dimension to the fastest; storage is always row-major and dense.
using Shape = std::vector<std::int64_t>;

/// How an element is stored. float16.h defines the types of 16 bits.
enum class Type { f32, i32, bf16, f16, u8 };

/// The arithmetic of a row, an axis of the benchmarks. bf16 and f16 decide the storage types of a
/// Workload; tf32 stores f32, and rounds what enters a matrix product to 11 bits.
enum class Precision { f32, tf32, bf16, f16 };

/// How a Workload of that precision stores what its products read: f32, bf16 or f16.
Type storage_of(Precision precision);

/// What a tensor is for: this decides where it is stored, its initial values, and how long they
/// are needed.
enum class Role {
  data,        ///< the whole data set, [rows, ...]; uploaded once
  input,       ///< a batch of rows of a data tensor: a view that each Run places
  parameter,   ///< trained, or frozen; starts from the deterministic generator
  gradient,    ///< of a parameter; lives from one step to the next, for accumulation
  state,       ///< of an optimizer; starts at zero
  activation,  ///< intermediate; needed only within one step
  loss,        ///< one element for each Run of the Workload's order
};

/// Index into Workload::tensors.
using Id = int;
inline constexpr Id none = -1;

/// How a parameter starts: at `value`, where bound > 0 off by a number uniform in [-bound, bound).
/// What stands for several parameters starts at what they come to: that number times the one of
/// its first index in `factor`, plus the one in `offset`, where there are such.
struct Start {
  double bound = 0;
  double value = 0;
  Id factor = none, offset = none;
};

struct Tensor {
  std::string name;
  Shape shape;
  Type type = Type::f32;
  Role role = Role::activation;
  Id source = none;  ///< for Role::input: the data tensor whose rows it views
  Start start;       ///< for Role::parameter
};

/// Number of elements; throws std::overflow_error where it does not fit 63 bits.
std::int64_t elements(const Shape& shape);

std::int64_t bytes(Type type);

/// Bytes of the whole tensor; throws std::overflow_error as elements() does.
std::int64_t bytes(const Tensor& tensor);

/// The extents before the last one multiplied: a tensor seen as a matrix [leading, last].
std::int64_t leading(const Shape& shape);

bool is_float(Type type);
bool is_16_bit(Type type);

std::string to_string(const Shape& shape);   ///< "[100, 4]"
std::string to_string(Type type);            ///< "f32", "i32", ...
std::string to_string(Precision precision);  ///< "f32", "tf32", ...

// ---- The places of a tensor that means are taken over and factors are shared by.

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

// ---- The window that a convolution or a pooling slides over an image.

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
  bool operator==(const Window&) const = default;
};

/// Rows or columns of the image from a window's first to its last.
inline std::int64_t extent(const Slide& slide) { return slide.dilation * (slide.size - 1) + 1; }

/// How many positions a window has over `extent` rows or columns; below one where it does not fit.
std::int64_t positions(const Slide& slide, std::int64_t extent);

/// [batch, channels, positions down, positions across] of images [batch, ..., height, width].
Shape windowed(const Window& window, const Shape& images, std::int64_t channels);

}  // namespace crossover
