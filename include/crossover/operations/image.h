// SPDX-License-Identifier: Apache-2.0
// Convolutions and pooling of images.
#pragma once

#include <cstdint>
#include <vector>

#include "crossover/activation.h"
#include "crossover/operation.h"
#include "crossover/tensor.h"

namespace crossover {

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

/// What becomes of a window: the largest of the part that is in the image; the mean, or the sum, of
/// the part that is in the image or in the padding around it (PyTorch's AvgPool2d with
/// count_include_pad). global_average: the mean of the whole image, or of a sequence over time.
enum class PoolKind { max, average, sum, global_average };

/// y = what becomes of each window of x. x [batch, channels, height, width], y [batch, channels,
/// positions, positions], both T. Of the largest, where [like y] = which one it is, as its place in
/// the window, row by row from 0: the first of those that are equal. It is u8, so that a window has
/// at most 255 places. A global average has no window: x may be [time, batch, channels] as well,
/// and y is [batch, channels].
struct Pool {
  PoolKind kind = PoolKind::max;
  Id x = none, y = none, where = none;
  Window window;

  static constexpr OpCategory category = OpCategory::pooling;
  [[nodiscard]] const char* name() const;
  template <class See>
  void describe(See& see) const {
    see.reads("x", x);
    see.writes("y", y);
    if (kind == PoolKind::max) {
      see.writes("where", where);
    }
    if (kind != PoolKind::global_average) {
      see.value("window", window);
    }
    see.newer_value("sums", kind == PoolKind::sum, false);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

/// dx [like x above] = the sum over the windows that hold the element of its share of dy [like y
/// above]: all of it where it is the largest, as `where` says, or in a sum; of a mean, dy by what
/// the mean divides by. x_activation is the activation that made x, and dx times its derivative,
/// which is taken from `made`: the y of the largest, else x; identity: no factor, and `made` may be
/// none. A global average has no window and takes no activation.
///
/// Of sums and a window as far as the next, each number of dy comes in all pixels of its window:
/// upsampling by the nearest one (PyTorch's Upsample), whose gradient is a Pool that sums.
struct PoolGrad {
  PoolKind kind = PoolKind::max;
  Id made = none, where = none, dy = none, dx = none;
  Window window;
  Activation x_activation = Activation::identity;

  static constexpr OpCategory category = OpCategory::pooling;
  [[nodiscard]] const char* name() const;
  template <class See>
  void describe(See& see) const {
    const bool has_window = kind != PoolKind::global_average;
    if (has_window) {
      see.reads(kind == PoolKind::max ? "y" : "x", made);
    }
    if (kind == PoolKind::max) {
      see.reads("where", where);
    }
    see.reads("dy", dy);
    see.writes("dx", dx);
    if (has_window) {
      see.value("window", window);
      see.value("x_activation", x_activation);
    }
    see.newer_value("sums", kind == PoolKind::sum, false);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

}  // namespace crossover
