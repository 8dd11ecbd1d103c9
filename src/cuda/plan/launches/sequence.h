// SPDX-License-Identifier: Apache-2.0
// Embeddings, and what a recurrent layer does between its products: one time step of its gates, and
// of their gradients. Matrices are [batch, hidden], those of gates [batch, wide].
#pragma once

#include <cstdint>

#include "crossover/operation.h"
#include "crossover/operations/recurrent.h"
#include "operand.h"

namespace crossover::cuda {

struct Site;

/// y [time, batch, width] = rows of table [.., width] by tokens [batch, time].
template <template <class> class At>
struct EmbeddingArguments {
  At<const std::int32_t> tokens;
  At<const void> table;
  At<void> y;
  std::int64_t batch = 0, time = 0, width = 0;
  static constexpr OpCategory category = OpCategory::elementwise;
};
using EmbeddingLaunch = EmbeddingArguments<Planned>;
void call(const EmbeddingArguments<Called>& of, const Site& site);

/// Row r of dtable [.., width] = the sum of dy [time, batch, width] where the token is r, in the
/// order of the tokens; rows without one are left alone. A block for each position: those that are
/// not the first of their token end at once, so no two blocks write one row and nothing is atomic.
/// They read the tokens over and over, batch * time of them each, which the caches hold: of 4096,
/// 16 KiB.
template <template <class> class At>
struct EmbeddingGradArguments {
  At<const std::int32_t> tokens;
  At<const void> dy;
  At<float> dtable;
  std::int64_t batch = 0, time = 0, width = 0;
  static constexpr OpCategory category = OpCategory::elementwise;
};
using EmbeddingGradLaunch = EmbeddingGradArguments<Planned>;
void call(const EmbeddingGradArguments<Called>& of, const Site& site);

/// y = x + row t of table [time, width], of x and y [time, batch, width].
template <template <class> class At>
struct PositionEmbeddingArguments {
  At<const void> x, table;
  At<void> y;
  std::int64_t time = 0, batch = 0, width = 0;
  static constexpr OpCategory category = OpCategory::elementwise;
};
using PositionEmbeddingLaunch = PositionEmbeddingArguments<Planned>;
void call(const PositionEmbeddingArguments<Called>& of, const Site& site);

/// dtable [time, width] = the sums of dy [time, batch, width] over the batch.
template <template <class> class At>
struct PositionEmbeddingGradArguments {
  At<const void> dy;
  At<float> dtable;
  std::int64_t time = 0, batch = 0, width = 0;
  static constexpr OpCategory category = OpCategory::elementwise;
};
using PositionEmbeddingGradLaunch = PositionEmbeddingGradArguments<Planned>;
void call(const PositionEmbeddingGradArguments<Called>& of, const Site& site);

/// From the sums of the products, without their biases.
template <template <class> class At>
struct GatesArguments {
  Cell cell;
  At<const float> of_inputs;  // [batch, wide]; may be gates, element by element
  At<const float> of_states;  // none: 0, or added to those of inputs
  At<const float> b_ih, b_hh;
  At<const void> before;  // of the step before, what the cell goes on from; none: 0
  At<void> gates;
  At<float> kept;
  At<void> h;
  std::int64_t batch = 0, hidden = 0;
  static constexpr OpCategory category = OpCategory::elementwise;
};
using GatesLaunch = GatesArguments<Planned>;
void call(const GatesArguments<Called>& of, const Site& site);

/// As of a RecurrentGrad, at one time step.
template <template <class> class At>
struct GatesGradArguments {
  Cell cell;
  At<const void> gates;
  At<const float> kept;
  At<const void> before;  // none: 0
  At<const void> dh;
  At<void> di, dk;  // no dk: it is di
  At<float> carry;
  std::int64_t batch = 0, hidden = 0;
  bool is_last = false;  ///< nothing is carried yet
  static constexpr OpCategory category = OpCategory::elementwise;
};
using GatesGradLaunch = GatesGradArguments<Planned>;
void call(const GatesGradArguments<Called>& of, const Site& site);

}  // namespace crossover::cuda
