// SPDX-License-Identifier: Apache-2.0
// A sequence, seen by its time steps: what recurrent layers read and write one after another.
#pragma once

#include <algorithm>
#include <cstdint>

#include "../planning/step_planner.h"

namespace crossover::cuda {

class Slices {
 public:
  /// Of so many elements each.
  Slices(const Operand& whole, std::int64_t elements)
      : whole_(whole), bytes_(elements * bytes(whole.type)) {}

  [[nodiscard]] Operand operator[](std::int64_t t) const { return part_of(whole_, t * bytes_); }
  /// Of every one of them.
  [[nodiscard]] std::int64_t alignment(const StepPlanner& step) const {
    return std::min(step.alignment(whole_), bytes_ & -bytes_);
  }

 private:
  Operand whole_;
  std::int64_t bytes_;
};

}  // namespace crossover::cuda
