// SPDX-License-Identifier: Apache-2.0
// When the activations of a Workload hold something that is still needed: those that never do at
// the same time can share memory.
#pragma once

#include <vector>

#include "crossover/step.h"

namespace crossover {

class Lifetimes {
 public:
  /// `kept`: what a step writes lives to its end, read or not.
  Lifetimes(const Workload& workload, bool kept);

  /// The activations that any step uses, in the order of their numbers.
  [[nodiscard]] const std::vector<Id>& activations() const { return activations_; }

  /// Whether some step needs both at once.
  [[nodiscard]] bool overlap(Id a, Id b) const;

 private:
  /// Positions of operations in one step, both inclusive. What a step reads before it writes it was
  /// put there from outside, and stays for the next run: it lives all the time. What nothing reads
  /// after it was written is a result, and lives to the end.
  struct Span {
    int step = 0;
    std::size_t first = 0, last = 0;
  };

  void add_step(const Workload& workload, int step, bool kept);

  std::vector<Id> activations_;
  std::vector<std::vector<Span>> spans_;  ///< by tensor, in the order of the steps
};

}  // namespace crossover
