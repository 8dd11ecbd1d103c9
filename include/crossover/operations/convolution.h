// SPDX-License-Identifier: Apache-2.0
// A convolution of images, and its gradients.
#pragma once

#include <cstdint>
#include <vector>

#include "crossover/activation.h"
#include "crossover/operation.h"
#include "crossover/tensor.h"
#include "crossover/window.h"

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

}  // namespace crossover
