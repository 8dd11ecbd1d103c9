// SPDX-License-Identifier: Apache-2.0
// A training step as data: operations on numbered tensors, without any device in it.
//
// Everything that is timed is a Workload. Each operation defines what it means (operations.h), and
// the reference (reference.h) computes it; backends compile it (backend.h); cost.h counts it.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "crossover/operations.h"
#include "crossover/tensor.h"

namespace crossover {

/// Operations in the order in which they run.
struct Step {
  std::vector<Op> ops;
};

/// One execution of a step: its input tensors view rows [first_row, first_row + batch) of their
/// sources.
struct Run {
  int step = 0;  ///< index into Workload::steps
  std::int64_t first_row = 0;
};

/// A few distinct steps over one table of tensors, and the order in which they run: a training
/// epoch (full batches, then a short one), or a single operation to be measured by itself.
struct Workload {
  std::vector<Tensor> tensors;
  std::vector<Step> steps;
  std::vector<Run> order;
  /// A state that counts the passes over the order. Where there is one, each pass reads the rows of
  /// the data in another order: where row i is asked for, row Shuffle(rows, epoch)[i] (random.h).
  Id epoch = none;

  const Tensor& operator[](Id id) const { return tensors[static_cast<std::size_t>(id)]; }
  Tensor& operator[](Id id) { return tensors[static_cast<std::size_t>(id)]; }

  /// Appends it; returns its number.
  Id add(Tensor tensor) {
    tensors.push_back(std::move(tensor));
    return static_cast<Id>(tensors.size()) - 1;
  }

  /// What runs at a position of the order.
  [[nodiscard]] const Step& step_at(std::int64_t position) const {
    const int step = order[static_cast<std::size_t>(position)].step;
    return steps[static_cast<std::size_t>(step)];
  }
};

/// Throws std::invalid_argument with the operation and the tensor at fault where shapes, types or
/// roles of a Workload do not fit what its operations ask for.
void check(const Workload& workload);

/// The same over the rows as they lie.
Workload unshuffled(Workload workload);

/// What a Workload's storage types ask for: bf16, f16, or f32, which tf32 shares. Throws
/// std::invalid_argument where it stores both types of 16 bits.
Precision stored_precision(const Workload& workload);

/// What a device asks of what it compiles: the same as check(), that the Workload is one of this
/// precision, and that it takes the rows as they lie (backend_over.h shuffles them).
void check(const Workload& workload, Precision precision);

}  // namespace crossover
