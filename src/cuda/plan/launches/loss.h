// SPDX-License-Identifier: Apache-2.0
// Losses with their gradients, and the counter of runs that says where a loss is
// written.
#pragma once

#include <cstdint>

#include "crossover/functions.h"
#include "crossover/operation.h"
#include "operand.h"

namespace crossover::cuda {

struct Site;

/// See SoftmaxCrossEntropy. In one block with the mean loss, else with the losses of rows.
template <template <class> class At>
struct LossArguments {
  At<const float> logits;         // [rows, classes]
  At<const std::int32_t> labels;  // [rows / time, time]
  At<float> loss;                 // [runs]; written at the counter of runs
  At<void> dlogits;               // [rows, classes]
  std::int64_t rows = 0, classes = 0;
  std::int64_t time = 1;      ///< rows lie time first: that of row t * batch + b is labels[b, t]
  float factor = 0;           ///< scale / rows
  bool advance = false;       ///< the last loss of its step also counts the run
  int threads = 1;            ///< of a row: 1, a warp, or a block of whole warps, up to 1024
  bool in_one_block = false;  ///< not with a block for each row
  static constexpr OpCategory category = OpCategory::loss;
};
using LossLaunch = LossArguments<Planned>;
void call(const LossArguments<Called>& of, const Site& site);

/// In so many sums ElementwiseLossArguments leaves the losses of `count` elements: one, the mean
/// itself, where one block does it.
constexpr std::int64_t loss_parts(std::int64_t count) {
  constexpr std::int64_t elements_of_a_block = 1024;
  constexpr std::int64_t most = 1024;
  const std::int64_t parts = (count + elements_of_a_block - 1) / elements_of_a_block;
  return parts < most ? parts : most;
}

/// See ElementwiseLoss.
template <template <class> class At>
struct ElementwiseLossArguments {
  At<const float> logits, targets;
  At<float> loss;  // [runs]; written at the counter of runs
  At<void> dlogits;
  LossFunction function = LossFunction::mse;
  std::int64_t count = 0;
  std::int64_t parts = 1;  ///< blocks: loss_parts()
  float factor = 0;        ///< scale / count
  bool advance = false;    ///< the last loss of its step also counts the run
  static constexpr OpCategory category = OpCategory::loss;
};
using ElementwiseLossLaunch = ElementwiseLossArguments<Planned>;
void call(const ElementwiseLossArguments<Called>& of, const Site& site);

/// loss = the sum of what the launch before it has left, over `count`: the losses of rows, or sums
/// of them.
template <template <class> class At>
struct MeanLossArguments {
  At<float> loss;
  std::int64_t rows = 0;   ///< how many it has left
  std::int64_t count = 0;  ///< rows or elements
  bool advance = false;
  static constexpr OpCategory category = OpCategory::loss;
};
using MeanLossLaunch = MeanLossArguments<Planned>;
void call(const MeanLossArguments<Called>& of, const Site& site);

/// Counts a run where the step has no loss to do it.
template <template <class> class At>
struct AdvanceArguments {
  static constexpr OpCategory category = OpCategory::elementwise;
};
using AdvanceLaunch = AdvanceArguments<Planned>;
void call(const AdvanceArguments<Called>& of, const Site& site);

/// The counter becomes `value`.
void set_run(std::int64_t value, const Site& site);

}  // namespace crossover::cuda
