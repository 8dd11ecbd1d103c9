// SPDX-License-Identifier: Apache-2.0
// What treats each number by itself.
#pragma once

#include <cstdint>
#include <variant>

#include "crossover/activation.h"
#include "crossover/functions.h"
#include "crossover/operation.h"
#include "crossover/tensor.h"

namespace crossover {

/// y = activation(x), elementwise.
struct Activate {
  Id x = none, y = none;
  Activation activation = Activation::identity;

  static constexpr const char* name = "Activate";
  static constexpr OpCategory category = OpCategory::elementwise;
  template <class See>
  void describe(See& see) const {
    see.reads("x", x);
    see.writes("y", y);
    see.value("activation", activation);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

/// dx = dy * activation', elementwise. The derivative is computed from `at`: the activation's input
/// x where derivative_takes_input(), else its result y.
struct ActivateGrad {
  Id at = none, dy = none, dx = none;
  Activation activation = Activation::identity;

  static constexpr const char* name = "ActivateGrad";
  static constexpr OpCategory category = OpCategory::elementwise;
  template <class See>
  void describe(See& see) const {
    see.reads(derivative_takes_input(activation) ? "x" : "y", at);
    see.reads("dy", dy);
    see.writes("dx", dx);
    see.value("activation", activation);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

using Function = OfFunctions<std::variant>;

/// work(function) for the one of the enumeration, or of the variant: each has value() and
/// gradient().
template <class Work>
auto with_function(Activation activation, const Work& work) {
  return with_activation(activation, work);
}
template <class Work>
auto with_function(const Function& function, const Work& work) {
  return std::visit(work, function);
}

/// y = function(x), elementwise.
struct Map {
  Id x = none, y = none;
  Function function;

  static constexpr const char* name = "Map";
  static constexpr OpCategory category = OpCategory::elementwise;
  template <class See>
  void describe(See& see) const {
    see.reads("x", x);
    see.writes("y", y);
    see.value("function", function);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

/// dx = dy * function'(x), elementwise.
struct MapGrad {
  Id x = none, dy = none, dx = none;
  Function function;

  static constexpr const char* name = "MapGrad";
  static constexpr OpCategory category = OpCategory::elementwise;
  template <class See>
  void describe(See& see) const {
    see.reads("x", x);
    see.reads("dy", dy);
    see.writes("dx", dx);
    see.value("function", function);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

/// y = a + b, elementwise: a residual join, and the sum of gradients where a value is used twice.
struct Add {
  Id a = none, b = none, y = none;

  static constexpr const char* name = "Add";
  static constexpr OpCategory category = OpCategory::elementwise;
  template <class See>
  void describe(See& see) const {
    see.reads("a", a);
    see.reads("b", b);
    see.writes("y", y);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

/// y = a b, elementwise. b has the shape of a, or one number for all places of it: [batch,
/// channels] or [batch, channels, 1, 1] of images [batch, channels, height, width], [batch, width]
/// of sequences [time, batch, width]. All T.
struct Multiply {
  Id a = none, b = none, y = none;

  static constexpr const char* name = "Multiply";
  static constexpr OpCategory category = OpCategory::elementwise;
  template <class See>
  void describe(See& see) const {
    see.reads("a", a);
    see.reads("b", b);
    see.writes("y", y);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

/// da = dy b and db = dy a, that of a gate summed over the places. One of them may be none, and
/// then what only it needs may be, too. All T.
struct MultiplyGrad {
  Id a = none, b = none, dy = none;
  Id da = none, db = none;

  static constexpr const char* name = "MultiplyGrad";
  static constexpr OpCategory category = OpCategory::elementwise;
  template <class See>
  void describe(See& see) const {
    see.reads("a", a);
    see.reads("b", b);
    see.reads("dy", dy);
    see.writes("da", da);
    see.writes("db", db);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

/// Whether a tensor of shape b has one number for all places of a.
bool is_gate_of(const Shape& a, const Shape& b);

/// Dropout (Srivastava et al. 2014) with masks that are the same on every device:
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
