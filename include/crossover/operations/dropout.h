// SPDX-License-Identifier: Apache-2.0
// Dropout (Srivastava et al. 2014), with masks that are the same on every device.
#pragma once

#include <cstdint>

#include "crossover/operation.h"

namespace crossover {

/// y = x / (1 - probability) where an element is kept, else 0. Element i, counted row by row in the
/// plain layout, is kept in step t where dropout_uniform(seed, t, i) >= probability (random.h).
/// `step` is t: one i32 that the operation increments before use. x and y are T. A step of one of
/// several ranks draws the mask that one process would if it trained their shares one after
/// another: `step` grows by `draws`, the number of ranks, and of these masks it takes number
/// `draw`, from 0.
struct Dropout {
  Id x = none, y = none, step = none;
  double probability = 0.5;  ///< of an element to be dropped, in [0, 1)
  std::int64_t seed = 0;     ///< another one for each layer
  std::int64_t draws = 1, draw = 0;

  static constexpr const char* name = "Dropout";
  static constexpr OpCategory category = OpCategory::elementwise;
  template <class See>
  void describe(See& see) const {
    see.reads("x", x);
    see.writes("y", y);
    see.reads("step", step);
    see.writes("step", step);
    see.value("probability", probability);
    see.value("seed", seed);
    see.newer_value("draws", draws, std::int64_t{1});
    see.newer_value("draw", draw, std::int64_t{0});
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

/// dx = dy / (1 - probability) where Dropout kept the element, else 0; `step` as Dropout left it.
struct DropoutGrad {
  Id dy = none, dx = none, step = none;
  double probability = 0.5;
  std::int64_t seed = 0, draws = 1, draw = 0;

  static constexpr const char* name = "DropoutGrad";
  static constexpr OpCategory category = OpCategory::elementwise;
  template <class See>
  void describe(See& see) const {
    see.reads("dy", dy);
    see.reads("step", step);
    see.writes("dx", dx);
    see.value("probability", probability);
    see.value("seed", seed);
    see.newer_value("draws", draws, std::int64_t{1});
    see.newer_value("draw", draw, std::int64_t{0});
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

/// What to add to `step`, as Dropout left it, to find the t of the mask.
template <class Op>
std::int64_t offset_of_mask(const Op& op) {
  return op.draw + 1 - op.draws;
}

}  // namespace crossover
