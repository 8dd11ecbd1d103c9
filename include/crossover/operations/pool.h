// SPDX-License-Identifier: Apache-2.0
// The maximum or the mean of each window of an image, and their gradients.
#pragma once

#include "crossover/activation.h"
#include "crossover/operation.h"
#include "crossover/window.h"

namespace crossover {

/// y = the largest of each window, of the part of it that is in the image;
/// where = which one, as its place in the window, row by row from 0: the first of those that are
/// equal. x [batch, channels, height, width], y and where [batch, channels, positions, positions].
/// x and y are T, where is u8, so that a window has at most 15 rows.
struct MaxPool {
  Id x = none, y = none, where = none;
  Window window;

  static constexpr const char* name = "MaxPool";
  static constexpr OpCategory category = OpCategory::pooling;
  template <class See>
  void describe(See& see) const {
    see.reads("x", x);
    see.writes("y", y);
    see.writes("where", where);
    see.value("window", window);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

/// dx = the sum of dy * x_activation'(y) over the windows whose largest element this is.
/// y, where and window as in MaxPool, dy like y, dx like x. x_activation is the activation that
/// made x, its derivative taken from the element itself, which is y; identity: no factor, and y may
/// be none.
struct MaxPoolGrad {
  Id y = none, where = none, dy = none, dx = none;
  Window window;
  Activation x_activation = Activation::identity;

  static constexpr const char* name = "MaxPoolGrad";
  static constexpr OpCategory category = OpCategory::pooling;
  template <class See>
  void describe(See& see) const {
    see.reads("y", y);
    see.reads("where", where);
    see.reads("dy", dy);
    see.writes("dx", dx);
    see.value("window", window);
    see.value("x_activation", x_activation);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

/// y = the mean of each window: of the part of it that is in the image or in the padding around it
/// (PyTorch's AvgPool2d with count_include_pad); or, where it `sums`, the sum. x [batch, channels,
/// height, width], y [batch, channels, positions, positions], both T.
struct AveragePool {
  Id x = none, y = none;
  Window window;
  bool sums = false;

  static constexpr const char* name = "AveragePool";
  static constexpr OpCategory category = OpCategory::pooling;
  template <class See>
  void describe(See& see) const {
    see.reads("x", x);
    see.writes("y", y);
    see.value("window", window);
    see.newer_value("sums", sums, false);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

/// dx = x_activation'(x) times the sum of dy / count over the windows that hold the element, where
/// count is what AveragePool divided by, 1 where it `sums`. dy like AveragePool's y, dx like its x.
/// x_activation is the activation that made x; identity: no factor, and x may be none.
///
/// With sums and a window as far as the next, each number of dy comes in all pixels of its window:
/// upsampling by the nearest one (PyTorch's Upsample), whose gradient is an AveragePool that sums.
struct AveragePoolGrad {
  Id x = none, dy = none, dx = none;
  Window window;
  Activation x_activation = Activation::identity;
  bool sums = false;

  static constexpr const char* name = "AveragePoolGrad";
  static constexpr OpCategory category = OpCategory::pooling;
  template <class See>
  void describe(See& see) const {
    see.reads("x", x);
    see.reads("dy", dy);
    see.writes("dx", dx);
    see.value("window", window);
    see.value("x_activation", x_activation);
    see.newer_value("sums", sums, false);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

}  // namespace crossover
