// SPDX-License-Identifier: Apache-2.0
// Convolutions and pooling of images.
#pragma once

#include <cstdint>
#include <vector>

#include "crossover/activation.h"
#include "crossover/operation.h"
#include "crossover/tensor.h"

namespace crossover {

// ---- A convolution of images, and its gradients.

/// Whether Winograd's F(2x2, 3x3) computes a convolution of x (Lavin & Gray, arXiv:1509.09308,
/// 2015): 2x2 results of a window of 3x3 that moves by one pixel take 16 multiplications for 36. In
/// float32, where it rounds as the plain sum does; shorter types it would round more. Not in
/// groups, whose few channels leave no product to save on.
bool has_winograd(const Tensor& x, const Tensor& w, const Window& window);

/// Into how many groups w [out, in / groups, size, size] divides the channels of x [batch, in,
/// height, width].
std::int64_t groups_of(const Tensor& x, const Tensor& w);

/// y = activation(x * w + bias): a cross-correlation over the positions of the window (PyTorch's
/// Conv2d). x [batch, in, height, width], w [out, in / groups, size, size], bias [out] or none, y
/// [batch, out, positions, positions]: the first out / groups channels are those of the first
/// in / groups, and so on. The window has no ceil. All are T.
struct Convolution {
  Id x = none, w = none, bias = none, y = none;
  Window window;
  Activation activation = Activation::identity;

  static constexpr const char* name = "Convolution";
  static constexpr OpCategory category = OpCategory::convolution;
  template <class See>
  void describe(See& see) const {
    see.reads("x", x);
    see.reads("w", w);
    see.reads("bias", bias);
    see.writes("y", y);
    see.value("window", window);
    see.value("activation", activation);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  [[nodiscard]] std::vector<OpProduct> products(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

/// Gradients of a Convolution with identity activation, from dy, which has the shape of its y:
/// dx [batch, in, height, width] or none, to which a bias [in] may be added, dw like w or none,
/// dbias [out] or none; x may be none where dw and dbias are. x, w, dy, dx and bias are T, dw T or
/// f32, dbias f32.
///
/// A transposed convolution (PyTorch's ConvTranspose2d) of dy is dx + bias. Its own gradients are a
/// Convolution and a dw that takes x and dy the other way round.
struct ConvolutionGrad {
  Id x = none, w = none, dy = none, dx = none, dw = none, dbias = none;
  Window window;
  Id bias = none;

  static constexpr const char* name = "ConvolutionGrad";
  static constexpr OpCategory category = OpCategory::convolution;
  template <class See>
  void describe(See& see) const {
    see.reads("x", x);
    see.reads("w", w);
    see.reads("dy", dy);
    see.writes("dx", dx);
    see.writes("dw", dw);
    see.writes("dbias", dbias);
    see.value("window", window);
    see.newer_reads("bias", bias);
  }
  /// x, or where that is none dx, which has its shape.
  [[nodiscard]] Id image() const { return x != none ? x : dx; }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  [[nodiscard]] std::vector<OpProduct> products(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

/// dbias [channels] = the sum of each channel of dy [batch, channels, height, width], T: the
/// gradient of a bias that was added to it. dbias is f32.
struct ChannelBiasGrad {
  Id dy = none, dbias = none;

  static constexpr const char* name = "ChannelBiasGrad";
  static constexpr OpCategory category = OpCategory::elementwise;
  template <class See>
  void describe(See& see) const {
    see.reads("dy", dy);
    see.writes("dbias", dbias);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

// ---- The maximum or the mean of each window of an image, and their gradients.

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

// ---- The mean of each channel of an image, or of a sequence over time, and its gradient.

/// y [batch, channels] = the mean of x [batch, channels, height, width] over height and width, or
/// of x [time, batch, channels] over time. Both T.
struct GlobalAveragePool {
  Id x = none, y = none;

  static constexpr const char* name = "GlobalAveragePool";
  static constexpr OpCategory category = OpCategory::pooling;
  template <class See>
  void describe(See& see) const {
    see.reads("x", x);
    see.writes("y", y);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

/// dx, like x above, = dy [batch, channels] / (height * width), or / time. Both T.
struct GlobalAveragePoolGrad {
  Id dy = none, dx = none;

  static constexpr const char* name = "GlobalAveragePoolGrad";
  static constexpr OpCategory category = OpCategory::pooling;
  template <class See>
  void describe(See& see) const {
    see.reads("dy", dy);
    see.writes("dx", dx);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

}  // namespace crossover
