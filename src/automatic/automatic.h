// SPDX-License-Identifier: Apache-2.0
// Execution::automatic: the fastest of several ways to run a Workload, by trial.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <vector>

#include "crossover/backend.h"
#include "trial.h"

namespace crossover {

/// A way to run it.
struct Way {
  Choice choice;
  std::function<std::unique_ptr<Plan>()> plan;
};

/// Sets to zero what a Program has trained.
using Clear = std::function<void(Program&)>;

/// Sets the tensors of these roles to zero.
void clear(Program& program, const Workload& workload, std::initializer_list<Role> roles);

/// Each way trains a few steps; two of them are in memory at a time. What is Unsupported
/// or does not fit is left out; anything else that a way throws is thrown. What is left is the
/// winner, as it was made.
class AutomaticPlan : public Plan {
 public:
  /// Throws Unsupported or OutOfMemory, as the first of the ways did, where none can be planned.
  AutomaticPlan(const std::vector<Way>& ways, const Trials& trials, Clear clear,
                Stopwatch now = steady_seconds);

  [[nodiscard]] std::int64_t bytes() const override;
  [[nodiscard]] std::int64_t bytes_keeping_activations() const override;
  [[nodiscard]] std::int64_t launches() const override;
  [[nodiscard]] std::unique_ptr<Program> instantiate() override;

 private:
  struct Planned {
    Choice choice;
    std::unique_ptr<Plan> plan;
  };
  struct Winner {
    std::size_t place = 0;  ///< in planned_
    std::unique_ptr<Program> program;
  };

  Winner fastest();
  template <class Bytes>
  [[nodiscard]] std::int64_t most(const Bytes& bytes) const;

  std::vector<Planned> planned_;  ///< those that are left
  bool instantiated_ = false;
  const Trials trials_;
  const Clear clear_;
  const Stopwatch now_;
};

}  // namespace crossover
