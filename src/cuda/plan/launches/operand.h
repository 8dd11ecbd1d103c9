// SPDX-License-Identifier: Apache-2.0
// The operands of launches: where they lie in a plan, which needs no CUDA, and their addresses when
// a kernel is called. A launch is one struct template for both: Arguments<Planned> is what a rule
// emits, Arguments<Called> what a kernel takes; bind.cpp makes the one of the other.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "crossover/host_device.h"
#include "crossover/tensor.h"
#include "ordered_run.h"

namespace crossover::cuda {

/// Which rows a step reads and from where: straight from the data set, or from one of the staging
/// buffers.
struct Position {
  std::int64_t first_row = 0;
  int buffer = in_place;
  static constexpr int in_place = -1;
};
/// For operands that stay where they are.
constexpr Position first_buffer{.buffer = 0};

/// Where an operand lies in the device block, and how far it goes: to the end of its tensor, or of
/// the part that a launch may touch. Only a view depends on the position.
struct Operand {
  std::int64_t offset = -1;  ///< bytes; -1: there is none
  std::int64_t row_bytes = 0;
  std::int64_t staged = -1;  ///< its place in the first staging buffer
  std::int64_t buffer_bytes = 0;
  std::int64_t bytes = 0;
  Type type = Type::f32;

  [[nodiscard]] bool exists() const { return offset >= 0 || staged >= 0; }
  [[nodiscard]] bool is_view() const { return staged >= 0 || row_bytes > 0; }
  [[nodiscard]] std::int64_t at(const Position& position) const {
    return staged >= 0 && position.buffer >= 0 ? staged + position.buffer * buffer_bytes
                                               : offset + position.first_row * row_bytes;
  }
};

/// Networks of which each launch does the same: each has a block of device memory, laid out as the
/// first one's, so many bytes behind the one before it.
struct Networks {
  std::int64_t count = 1;
  std::int64_t stride = 0;

  /// As many as a grid has in its second dimension.
  static constexpr std::int64_t most = 65535;

  // clang-tidy 14 takes the comparison with zero that the compiler makes for ours.
  // NOLINTNEXTLINE(modernize-use-nullptr,readability-implicit-bool-conversion)
  auto operator<=>(const Networks&) const = default;
};

/// The part of it that begins so many bytes after it.
inline Operand part_of(Operand whole, std::int64_t bytes) {
  whole.offset += bytes;
  whole.staged += whole.staged >= 0 ? bytes : 0;
  whole.bytes -= bytes;
  return whole;
}

/// The smallest multiple of `to` that is not less than the value.
constexpr std::int64_t round_up(std::int64_t value, std::int64_t to) {
  return (value + to - 1) / to * to;
}

/// An operand in the device's memory; null where there is none. It becomes a pointer to whatever
/// the kernel knows it to hold.
struct Address {
  void* at = nullptr;
  Type type = Type::f32;

  template <class T>
  // NOLINTNEXTLINE(google-explicit-constructor): which T, its reader says
  CROSSOVER_HOST_DEVICE operator T*() const {
    return static_cast<T*>(at);
  }
};

/// An operand that holds T, or numbers of a type of its own where that is void.
template <class T>
using Planned = Operand;
template <class T>
using Called = std::conditional_t<std::is_void_v<T>, Address, T*>;

/// Of tensors or spans that one kernel takes: they travel as its parameters.
constexpr std::size_t max_spans = 32;

/// Tensors whose rows one kernel gathers.
constexpr std::size_t max_gathered = 8;

/// Tensors or spans that one kernel passes over, one after another: at most max_spans.
template <class Span>
struct CalledSpans {
  Span span[max_spans];  // NOLINT(*-avoid-c-arrays): device code has no std::array
  int count = 0;
};
template <template <class> class At, class Span>
using Spans =
    std::conditional_t<std::is_same_v<At<void>, Operand>, std::vector<Span>, CalledSpans<Span>>;

// ---- How images lie, and where the elements of those that lie channels-last are in the plain
// layout: for the host, for kernels, for plans.

/// How a tensor's elements lie on the device. upload() and download() take and give the plain
/// layout whatever it is.
enum class Layout {
  plain,          ///< row-major: images [batch, channels, height, width]
  channels_last,  ///< [batch, height, width, channels]; weights [out, size, size, in]
};

/// Images as what is done by channel sees them, [outer, channels, inner]: channels-last, outer is
/// the pixels of all images and inner 1; plain, outer is images and inner the pixels of one.
struct ChannelView {
  std::int64_t outer = 0, channels = 0, inner = 1;

  /// Numbers of a channel.
  [[nodiscard]] CROSSOVER_HOST_DEVICE std::int64_t rows() const { return outer * inner; }
};

/// Of [.., channels, pixels], each block of channels times pixels lies as [pixels, channels].
/// 1 and 1: row-major.
struct Arrangement {
  std::int64_t channels = 1, pixels = 1;

  [[nodiscard]] bool is_plain() const { return channels == 1 || pixels == 1; }
  friend bool operator==(const Arrangement&, const Arrangement&) = default;
};

/// [.., outer, inner] at i is [.., inner, outer] at this. Index is 32 or 64 bits wide: a GPU
/// divides the short ones several times faster.
template <class Index>
CROSSOVER_HOST_DEVICE inline Index swapped(Index i, Index outer, Index inner) {
  const Index k = i % inner;
  const Index rest = i / inner;
  const Index o = rest % outer;
  return (rest / outer * inner + k) * outer + o;
}

/// The place in the plain layout of what lies at i.
inline std::int64_t plain_index(std::int64_t i, const Arrangement& arrangement) {
  return swapped(i, arrangement.pixels, arrangement.channels);
}

// ---- The fields of a plain struct one by one, which C++20 has no word for: how many there are, by
// trying, and their values, by structured bindings of that number. So an Arguments<Called> is made
// of an Arguments<Planned>.

/// Takes the place of any field.
struct AnyField {
  template <class T>
  // NOLINTNEXTLINE(google-explicit-constructor): that is what it is for
  operator T() const;
};

template <class Struct, class... Fields>
constexpr std::size_t count_fields() {
  if constexpr (requires { Struct{Fields{}..., AnyField{}}; }) {
    return count_fields<Struct, Fields..., AnyField>();
  } else {
    return sizeof...(Fields);
  }
}

/// A `To` whose fields are turn(field) of those of the other struct, which has as many.
template <class To, class From, class Turn>
To with_turned_fields(const From& from, const Turn& turn) {
  constexpr std::size_t count = count_fields<From>();
  static_assert(count == count_fields<To>());
  static_assert(count <= 11, "one more case below");
  const auto all = [&](const auto&... field) { return To{turn(field)...}; };
  if constexpr (count == 0) {
    return all();
  } else if constexpr (count == 1) {
    const auto& [a] = from;
    return all(a);
  } else if constexpr (count == 2) {
    const auto& [a, b] = from;
    return all(a, b);
  } else if constexpr (count == 3) {
    const auto& [a, b, c] = from;
    return all(a, b, c);
  } else if constexpr (count == 4) {
    const auto& [a, b, c, d] = from;
    return all(a, b, c, d);
  } else if constexpr (count == 5) {
    const auto& [a, b, c, d, e] = from;
    return all(a, b, c, d, e);
  } else if constexpr (count == 6) {
    const auto& [a, b, c, d, e, f] = from;
    return all(a, b, c, d, e, f);
  } else if constexpr (count == 7) {
    const auto& [a, b, c, d, e, f, g] = from;
    return all(a, b, c, d, e, f, g);
  } else if constexpr (count == 8) {
    const auto& [a, b, c, d, e, f, g, h] = from;
    return all(a, b, c, d, e, f, g, h);
  } else if constexpr (count == 9) {
    const auto& [a, b, c, d, e, f, g, h, i] = from;
    return all(a, b, c, d, e, f, g, h, i);
  } else if constexpr (count == 10) {
    const auto& [a, b, c, d, e, f, g, h, i, j] = from;
    return all(a, b, c, d, e, f, g, h, i, j);
  } else {
    const auto& [a, b, c, d, e, f, g, h, i, j, k] = from;
    return all(a, b, c, d, e, f, g, h, i, j, k);
  }
}

}  // namespace crossover::cuda
