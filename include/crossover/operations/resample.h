// SPDX-License-Identifier: Apache-2.0
// Images of other sizes, whose pixels lie between those of the ones they come from.
#pragma once

#include <cstdint>

#include "crossover/host_device.h"
#include "crossover/operation.h"

namespace crossover {

/// How `from` numbers along an axis become `to`: the result's number i lies at
/// (step i + offset) / unit of them, held within them, and is interpolated between its two
/// neighbours. In integers, so that whoever computes a place finds the same one.
template <class Int>
struct ResampledAxis {
  Int from = 1, to = 1, step = 2, offset = 0, unit = 2;

  /// `aligned`: the first and the last number stay where they are (PyTorch's align_corners); else
  /// each number stands for the middle of its pixel. Then `to` is more than one, or as `from`.
  static ResampledAxis of(Int from, Int to, bool aligned) {
    if (aligned && from != to) {
      return {from, to, from - 1, 0, to - 1};
    }
    return {from, to, 2 * from, from - to, 2 * to};
  }

  struct Range {
    Int begin, end;
  };

  /// Which numbers the result's number i reads.
  [[nodiscard]] CROSSOVER_HOST_DEVICE Range read_by(Int i) const {
    const Int first = place(i) / unit;
    return {first, first + (place(i) % unit == 0 ? 1 : 2)};
  }

  /// Which of the result's numbers read the number at `at`, and perhaps some beside them.
  [[nodiscard]] CROSSOVER_HOST_DEVICE Range readers_of(Int at) const {
    if (step == 0) {
      return {0, to};
    }
    const Int before = (at - 1) * unit - offset;
    const Int behind = (at + 1) * unit - offset;
    const Int end = behind <= 0 ? 0 : (behind + step - 1) / step;
    return {before < 0 ? 0 : before / step + 1, end < to ? end : to};
  }

  /// What the number at `at` counts for in the result's number i: 0 to 1.
  template <class Number>
  [[nodiscard]] CROSSOVER_HOST_DEVICE Number share(Int at, Int i) const {
    const Int apart = place(i) < at * unit ? at * unit - place(i) : place(i) - at * unit;
    return apart < unit ? static_cast<Number>(unit - apart) / static_cast<Number>(unit) : 0;
  }

 private:
  /// In parts of `unit`.
  [[nodiscard]] CROSSOVER_HOST_DEVICE Int place(Int i) const {
    const Int found = step * i + offset;
    const Int last = (from - 1) * unit;
    return found < 0 ? 0 : found < last ? found : last;
  }
};

/// y = x with its pixels interpolated between rows and between columns (PyTorch's interpolate with
/// mode="bilinear", of images of height 1 "linear"). x [batch, channels, height, width] and y
/// [batch, channels, another height, another width], both T. `transposed`: its gradient, from that
/// of the result in x to that of the images in y.
struct Resample {
  Id x = none, y = none;
  bool aligned = false;
  bool transposed = false;

  static constexpr OpCategory category = OpCategory::pooling;
  [[nodiscard]] const char* name() const { return transposed ? "ResampleGrad" : "Resample"; }
  /// Of the images that are resampled, and of what becomes of them.
  [[nodiscard]] Id images() const { return transposed ? y : x; }
  [[nodiscard]] Id result() const { return transposed ? x : y; }
  template <class See>
  void describe(See& see) const {
    see.reads("x", x);
    see.writes("y", y);
    see.value("aligned", aligned);
    see.value("transposed", transposed);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

}  // namespace crossover
