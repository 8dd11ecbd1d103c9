// SPDX-License-Identifier: Apache-2.0
// Windows over images, and images of other sizes, which in plain layout are f32. The gradients
// gather: a thread owns an element of dx and looks at the windows that hold it, so nothing is added
// twice and every run sums alike. Fewer than 2^31 elements.
#pragma once

#include <cstdint>

#include "crossover/activation.h"
#include "crossover/operations/image.h"
#include "crossover/operations/resample.h"
#include "crossover/tensor.h"
#include "operand.h"

namespace crossover::cuda {

struct Site;

/// A window over images, how many positions it has, and what becomes of it: not a global average.
struct Pooling {
  PoolKind kind = PoolKind::max;
  std::int64_t batch = 0, channels = 0, height = 0, width = 0;
  std::int64_t positions_down = 0, positions_across = 0;
  Pair size = 1, stride = 1, padding = 0;
  Layout layout = Layout::plain;
};

template <template <class> class At>
struct PoolArguments {
  At<const void> x;
  At<void> y;
  At<std::uint8_t> where;  // of the largest, else none
  Pooling pooling;
  static constexpr OpCategory category = OpCategory::pooling;
};
using PoolLaunch = PoolArguments<Planned>;
void call(const PoolArguments<Called>& of, const Site& site);

template <template <class> class At>
struct PoolGradArguments {
  At<const void> made;           // or none, where the activation is identity
  At<const std::uint8_t> where;  // of the largest, else none
  At<const void> dy;
  At<void> dx;
  Pooling pooling;
  Activation x_activation = Activation::identity;
  static constexpr OpCategory category = OpCategory::pooling;
};
using PoolGradLaunch = PoolGradArguments<Planned>;
void call(const PoolGradArguments<Called>& of, const Site& site);

/// y [batch, channels] = the mean of x over pixels, which is [batch, channels, pixels] or, where it
/// lies channels-last, [batch, pixels, channels].
template <template <class> class At>
struct GlobalAveragePoolArguments {
  At<const void> x;
  At<void> y;
  std::int64_t batch = 0, pixels = 0, channels = 0;
  Layout layout = Layout::plain;
  static constexpr OpCategory category = OpCategory::pooling;
};
using GlobalAveragePoolLaunch = GlobalAveragePoolArguments<Planned>;
void call(const GlobalAveragePoolArguments<Called>& of, const Site& site);

/// dx, as x above, = dy [batch, channels] / pixels.
template <template <class> class At>
struct GlobalAveragePoolGradArguments {
  At<const void> dy;
  At<void> dx;
  std::int64_t batch = 0, pixels = 0, channels = 0;
  Layout layout = Layout::plain;
  static constexpr OpCategory category = OpCategory::pooling;
};
using GlobalAveragePoolGradLaunch = GlobalAveragePoolGradArguments<Planned>;
void call(const GlobalAveragePoolGradArguments<Called>& of, const Site& site);

/// A Resample.
template <template <class> class At>
struct ResampleArguments {
  At<const void> x;
  At<void> y;
  std::int64_t batch = 0, channels = 0;
  ResampledAxis<int> down, across;
  bool transposed = false;
  Layout layout = Layout::plain;
  static constexpr OpCategory category = OpCategory::pooling;
};
using ResampleLaunch = ResampleArguments<Planned>;
void call(const ResampleArguments<Called>& of, const Site& site);

}  // namespace crossover::cuda
