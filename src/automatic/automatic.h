// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <memory>
#include <vector>

#include "crossover/backend.h"
#include "crossover/backend_over.h"

namespace crossover {

// ---- Two Programs of the same Workload, timed in turn.

/// Gives a Program its initial parameters, and data like that of generated rows: uniform, labels
/// and tokens over all that there are. Equal ones would take another time, in the gradient of an
/// embedding many times as long.
void begin_trial(Program& program, const Workload& workload);

/// How Programs are tried.
struct Trials {
  std::int64_t runs = 1;   ///< positions of the order
  std::int64_t least = 1;  ///< of them those that are enqueued at once, at least: divides `runs`
  /// After which no further way is tried, once there is one.
  double most_seconds = std::numeric_limits<double>::infinity();
  /// What a Program trains on, which has none when it is made.
  std::function<void(Program&)> begin = [](Program& /*on_zeros*/) {};
};

/// Seconds of the `least` first positions of the order, about: the second time, as the first
/// touches memory and wakes threads, unless it takes too long for that to matter.
double seconds_of_least(Program& program, const Trials& trials, const Stopwatch& now);

/// What seconds_of_least() found of a Program.
struct Contender {
  Program& program;
  double seconds;
};

/// The seconds of the second over those of the first, for the `least` first positions of the order,
/// or for as many as are worth timing at once. Both start with what they hold, and hold anything
/// afterwards. Takes a fifth of a second of each at most, or the `least` positions once; nothing
/// where long ones differ by much.
double ratio_of_seconds(const Contender& first, const Contender& second, const Trials& trials,
                        const Stopwatch& now);

// ---- Execution::automatic: the fastest of several ways to run a Workload, by trial.

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
