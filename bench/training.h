// SPDX-License-Identifier: Apache-2.0
// What families of rows that train networks share: the data, the references, and a network compiled
// and verified on a target.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "arguments.h"
#include "crossover/backend.h"
#include "crossover/dataset.h"
#include "crossover/training.h"
#include "crossover/verify.h"
#include "row.h"
#include "target.h"

namespace crossover::bench {

/// A network as it is trained, on whatever device.
struct TrainingPlan {
  Task task;
  TrainingOptions options;
  double flops = 0;  ///< of an epoch, nearly
};

/// A network compiled for a target and verified there.
struct TrainingProgram {
  Workload workload;  ///< an epoch, as it was compiled
  std::unique_ptr<Program> program;

  [[nodiscard]] std::int64_t steps() const { return std::ssize(workload.order); }
  /// Throws std::runtime_error where a loss or a parameter is not finite.
  void require_finite() const;
};

class Training {
 public:
  /// Reads --data. Throws UsageError.
  explicit Training(Arguments arguments);

  /// Each network with each batch size and precision. Throws UsageError where one is beyond
  /// counting.
  [[nodiscard]] std::vector<TrainingPlan> plans() const;

  /// The keys of a row's configuration that the plan decides, but for `family`.
  [[nodiscard]] Configuration configuration(const TrainingPlan& plan) const;

  /// On the CPU each number of threads, on a GPU each of the command line's modes.
  [[nodiscard]] std::vector<Target> targets(const TrainingPlan& plan, Devices& devices) const;

  /// Compiles it, runs its first epoch, and verifies what a reference can in a few seconds. Fills
  /// in the counters that all families of training have. Throws OutOfMemory before it takes any.
  TrainingProgram prepare(const TrainingPlan& plan, const Target& target, Result& result);

  /// A guess at a row's seconds, and what it shares with other rows of the network.
  void expect(Row& row, const TrainingPlan& plan, const Target& target) const;

 private:
  struct Data {
    Dataset rows;
    std::uint64_t fingerprint = 0;
  };
  /// An epoch as it is computed, however a backend optimizes it, and what it trains on.
  struct Subject {
    const TrainingPlan& plan;
    Workload epoch;
    const Data& data;
    std::uint64_t fingerprint = 0;  ///< of both
  };

  void read_data();
  [[nodiscard]] Workload lowered(const TrainingPlan& plan, const Target& target) const;
  const Data& data_of(const Task& task);
  const Trajectory& trajectory_of(const Subject& subject);
  Verification verified(const TrainingProgram& made, const Subject& subject);

  Arguments arguments_;
  std::map<std::string, Data> data_;                  ///< by model
  std::map<std::uint64_t, Trajectory> trajectories_;  ///< by fingerprint
};

}  // namespace crossover::bench
