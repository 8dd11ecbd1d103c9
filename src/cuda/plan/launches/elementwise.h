// SPDX-License-Identifier: Apache-2.0
// Passes over whole tensors: element by element, by blocks, and sums. Here as in the other
// families: arrays are row-major and in device memory, and call() puts the work into the site's
// stream and returns.
#pragma once

#include <cstdint>

#include "crossover/activation.h"
#include "crossover/operation.h"
#include "crossover/operations/elementwise.h"
#include "operand.h"

namespace crossover::cuda {

struct Site;

/// y = activation(x); y may be x.
template <template <class> class At>
struct ActivateArguments {
  At<const void> x;
  At<void> y;
  std::int64_t count = 0;
  Activation activation = Activation::identity;
  static constexpr OpCategory category = OpCategory::elementwise;
};
using ActivateLaunch = ActivateArguments<Planned>;
void call(const ActivateArguments<Called>& of, const Site& site);

/// dx = dy * derivative, taken from `at` as of ActivateGrad; dx may be dy.
template <template <class> class At>
struct ActivateGradArguments {
  At<const void> at, dy;
  At<void> dx;
  std::int64_t count = 0;
  Activation activation = Activation::identity;
  static constexpr OpCategory category = OpCategory::elementwise;
};
using ActivateGradLaunch = ActivateGradArguments<Planned>;
void call(const ActivateGradArguments<Called>& of, const Site& site);

/// y = function(x).
template <template <class> class At>
struct MapArguments {
  At<const void> x;
  At<void> y;
  std::int64_t count = 0;
  Function function;
  static constexpr OpCategory category = OpCategory::elementwise;
};
using MapLaunch = MapArguments<Planned>;
void call(const MapArguments<Called>& of, const Site& site);

/// dx = dy * function'(x); dx may be dy.
template <template <class> class At>
struct MapGradArguments {
  At<const void> x, dy;
  At<void> dx;
  std::int64_t count = 0;
  Function function;
  static constexpr OpCategory category = OpCategory::elementwise;
};
using MapGradLaunch = MapGradArguments<Planned>;
void call(const MapGradArguments<Called>& of, const Site& site);

/// y = a + b.
template <template <class> class At>
struct AddArguments {
  At<const void> a, b;
  At<void> y;
  std::int64_t count = 0;
  static constexpr OpCategory category = OpCategory::elementwise;
};
using AddLaunch = AddArguments<Planned>;
void call(const AddArguments<Called>& of, const Site& site);

/// y [rows, columns] = activation(x + bias [columns]): what no epilogue did. x is y itself where
/// that is f32: so the product is not rounded to 16 bits before its bias, which has y's type.
template <template <class> class At>
struct BiasActivateArguments {
  At<const float> x;
  At<const void> bias;
  At<void> y;
  std::int64_t rows = 0, columns = 0;
  Activation activation = Activation::identity;
  static constexpr OpCategory category = OpCategory::elementwise;
};
using BiasActivateLaunch = BiasActivateArguments<Planned>;
void call(const BiasActivateArguments<Called>& of, const Site& site);

/// Images y = activation(y + bias [channels]), of one type: what the library did not fuse to a
/// convolution.
template <template <class> class At>
struct ChannelBiasArguments {
  At<void> y;
  At<const void> bias;
  ChannelView images;
  Activation activation = Activation::identity;
  static constexpr OpCategory category = OpCategory::elementwise;
};
using ChannelBiasLaunch = ChannelBiasArguments<Planned>;
void call(const ChannelBiasArguments<Called>& of, const Site& site);

/// Several from one type to another: so none of them reads what another writes. One of the two is
/// f32; or both are the same, where the copy of a parameter is kept beside the one that its
/// optimizer writes.
template <template <class> class At>
struct CastSpan {
  At<const void> x;
  At<void> y;
  std::int64_t count = 0;
};
template <template <class> class At>
struct CastArguments {
  Spans<At, CastSpan<At>> casts;
  static constexpr OpCategory category = OpCategory::elementwise;
};
using CastLaunch = CastArguments<Planned>;
void call(const CastArguments<Called>& of, const Site& site);

/// y = x, element by element in the plain order. Elements of 2 or 4 bytes.
template <template <class> class At>
struct ReshapeArguments {
  At<const void> x;
  At<void> y;
  std::int64_t count = 0;
  Arrangement from, to;

  [[nodiscard]] bool moves() const { return !from.is_plain() || !to.is_plain(); }
};
using ReshapeLaunch = ReshapeArguments<Planned>;
void call(const ReshapeArguments<Called>& of, const Site& site);

/// `count` numbers become 0.
template <template <class> class At>
struct ZeroArguments {
  At<float> to;
  std::int64_t count = 0;
  static constexpr OpCategory category = OpCategory::elementwise;
};
using ZeroLaunch = ZeroArguments<Planned>;
void call(const ZeroArguments<Called>& of, const Site& site);

/// counter += by.
template <template <class> class At>
struct CountArguments {
  At<std::int32_t> counter;
  std::int32_t by = 1;
  static constexpr OpCategory category = OpCategory::elementwise;
};
using CountLaunch = CountArguments<Planned>;
void call(const CountArguments<Called>& of, const Site& site);

/// Dropout by the mask that every device draws, or its gradient from dy: y = x / (1 - probability)
/// where the element is kept, else 0; y may be x. `offset`: offset_of_mask().
template <template <class> class At>
struct DropoutArguments {
  At<const void> x;
  At<void> y;
  At<const std::int32_t> step;
  std::int64_t count = 0;
  Arrangement arrangement;
  double probability = 0;
  std::int64_t seed = 0;
  std::int32_t offset = 0;
  static constexpr OpCategory category = OpCategory::elementwise;
};
using DropoutLaunch = DropoutArguments<Planned>;
void call(const DropoutArguments<Called>& of, const Site& site);

// ---- Products of two tensors [outer, places, inner], of which one may be a gate [outer, inner]:
// of images in the plain layout inner is 1, channels-last it is the channels.

/// y = a b; `places` is 1 where b has the shape of a.
template <template <class> class At>
struct MultiplyArguments {
  At<const void> a, b;
  At<void> y;
  std::int64_t outer = 0, places = 0, inner = 0;
  static constexpr OpCategory category = OpCategory::elementwise;
};
using MultiplyLaunch = MultiplyArguments<Planned>;
void call(const MultiplyArguments<Called>& of, const Site& site);

/// sums [outer, inner] of a b over the places: by a warp each where inner is 1, else by a thread.
template <template <class> class At>
struct MultiplySumsArguments {
  At<const void> a, b;
  At<void> sums;
  std::int64_t outer = 0, places = 0, inner = 0;
  static constexpr OpCategory category = OpCategory::elementwise;
};
using MultiplySumsLaunch = MultiplySumsArguments<Planned>;
void call(const MultiplySumsArguments<Called>& of, const Site& site);

// ---- Blocks of numbers copied from one tensor to another.

/// From the largest step in `to` to the smallest: the first `used` of them.
struct CopiedExtents {
  static constexpr int most = 8;
  int used = 0;
  std::int64_t count[most] = {};  // NOLINT(*-avoid-c-arrays): of device code
  std::int64_t from[most] = {};   // NOLINT(*-avoid-c-arrays)
  std::int64_t to[most] = {};     // NOLINT(*-avoid-c-arrays)
};

/// Of each index i: to[to_first + sum i to] = from[from_first + sum i from]. As many numbers as
/// `count`, which is the product of the extents.
template <template <class> class At>
struct RearrangeArguments {
  At<const void> from;
  At<void> to;
  std::int64_t from_first = 0, to_first = 0;
  std::int64_t count = 0;
  CopiedExtents extents;
  static constexpr OpCategory category = OpCategory::elementwise;
};
using RearrangeLaunch = RearrangeArguments<Planned>;
void call(const RearrangeArguments<Called>& of, const Site& site);

// ---- Sums, taken in a fixed order.

/// sums [parts, columns] (+)= the sums of matrix [rows, columns] over each of `parts` equal parts
/// of its rows. Only the sums of one part may accumulate.
template <template <class> class At>
struct ColumnSumsArguments {
  At<const void> matrix;
  At<float> sums;
  std::int64_t rows = 0, columns = 0;
  bool accumulate = false;
  std::int64_t parts = 1;
  static constexpr OpCategory category = OpCategory::elementwise;
};
using ColumnSumsLaunch = ColumnSumsArguments<Planned>;
void call(const ColumnSumsArguments<Called>& of, const Site& site);

/// sums [rows] = the sums of each row of matrix [rows, columns], which is f32.
template <template <class> class At>
struct RowSumsArguments {
  At<const float> matrix;
  At<float> sums;
  std::int64_t rows = 0, columns = 0;
  static constexpr OpCategory category = OpCategory::elementwise;
};
using RowSumsLaunch = RowSumsArguments<Planned>;
void call(const RowSumsArguments<Called>& of, const Site& site);

}  // namespace crossover::cuda
