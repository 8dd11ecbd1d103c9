// SPDX-License-Identifier: Apache-2.0
// What moves numbers, or stores them in another way, and computes nothing.
#pragma once

#include <optional>
#include <vector>

#include "crossover/operation.h"

namespace crossover {

/// One dimension of a block: so many numbers, each so many elements behind the one before, or in
/// front of it where that is below 0.
struct BlockExtent {
  std::int64_t count = 1, from_step = 0, to_step = 0;

  friend bool operator==(const BlockExtent&, const BlockExtent&) = default;
};

/// Numbers of x[from], the first of them at element `from_first`, and where they go in y[to]. In an
/// image each extent steps from pixel to pixel within a channel, from channel to channel within an
/// image, or from image to image.
struct CopiedBlock {
  std::int64_t from = 0, to = 0;
  std::int64_t from_first = 0, to_first = 0;
  std::vector<BlockExtent> extents;

  [[nodiscard]] std::int64_t count() const;
};

/// Each block of x is copied into y, where no two may meet; what no block reaches becomes 0. All T,
/// or all i32.
struct Rearrange {
  std::vector<Id> x, y;
  std::vector<CopiedBlock> blocks;

  static constexpr const char* name = "Rearrange";
  static constexpr OpCategory category = OpCategory::elementwise;
  template <class See>
  void describe(See& see) const {
    see.reads("x", x);
    see.writes("y", y);
    see.value("blocks", blocks);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;

  /// Whether blocks reach each of the `elements` numbers of y[to].
  [[nodiscard]] bool fills(std::size_t to, std::int64_t elements) const;
};

/// That of places `from` to `to` (not with it) of dimension `axis`, as a tensor of their own.
CopiedBlock part_of(const Shape& whole, std::size_t axis, std::int64_t from, std::int64_t to);

/// Those of tensors that follow one another in dimension `axis` of y[0], in which alone they
/// differ.
std::vector<CopiedBlock> joined(const std::vector<Shape>& parts, std::size_t axis);

/// That of one tensor within another, or the other way round: so far behind, in each dimension, as
/// `before` says, or in front of it where that is below zero; what the other lacks is left out.
CopiedBlock within(const Shape& from, const Shape& to, const Shape& before);

/// That of an image [batch, channels, height, width] as [height * width, batch, channels].
std::vector<CopiedBlock> as_sequence(const Shape& image);

/// The way back.
std::vector<CopiedBlock> reversed(std::vector<CopiedBlock> blocks);

/// How channels lie in memory: [.., channels / width, pixels, width]. Of width 1 it is the plain
/// layout, as wide as all channels it is channels-last.
struct ChannelsLie {
  std::int64_t channels = 1, pixels = 1, width = 1;
};

/// The block as tensors that lie so see it: its extents from the largest step in `to` to the
/// smallest, one at least, those that run on joined. None where it cuts a block of channels.
std::optional<CopiedBlock> lying(CopiedBlock block, const ChannelsLie& from, const ChannelsLie& to);

/// y = x, element by element in row-major order; both have as many, of one type.
struct Reshape {
  Id x = none, y = none;

  static constexpr const char* name = "Reshape";
  static constexpr OpCategory category = OpCategory::elementwise;
  template <class See>
  void describe(See& see) const {
    see.reads("x", x);
    see.writes("y", y);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

/// y = x in another type, elementwise: from f32, or to it.
struct Cast {
  Id x = none, y = none;

  static constexpr const char* name = "Cast";
  static constexpr OpCategory category = OpCategory::elementwise;
  template <class See>
  void describe(See& see) const {
    see.reads("x", x);
    see.writes("y", y);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

/// Each element of the tensors, all f32, becomes 0: gradients that layers add to begin so.
struct Zero {
  std::vector<Id> tensors;

  static constexpr const char* name = "Zero";
  static constexpr OpCategory category = OpCategory::elementwise;
  template <class See>
  void describe(See& see) const {
    see.writes("tensors", tensors);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

}  // namespace crossover
