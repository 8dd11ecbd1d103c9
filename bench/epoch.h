// SPDX-License-Identifier: Apache-2.0
// Family Epoch: one iteration trains a network on its whole data set once.
#pragma once

#include <benchmark/benchmark.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "arguments.h"
#include "crossover/backend.h"
#include "crossover/dataset.h"
#include "crossover/verify.h"
#include "row.h"

namespace crossover::bench {

class EpochFamily {
 public:
  /// Reads the user's data, if any: UsageError where that fails.
  EpochFamily(const Arguments& arguments, const Backend& backend, Rows& rows);
  EpochFamily(const EpochFamily&) = delete;
  EpochFamily& operator=(const EpochFamily&) = delete;
  ~EpochFamily();

  /// Registers a benchmark for each network, batch size and thread count.
  void register_rows();

  /// Frees what a finished row holds.
  void release(const std::string& name);

 private:
  struct Plan;
  struct Prepared;

  void run(benchmark::State& state, const Plan& plan, const std::string& name);
  Prepared& prepare(const Plan& plan, const std::string& name);
  std::unique_ptr<Prepared> make(const Plan& plan, const std::string& name);
  void require_memory(const Plan& plan) const;
  static double approximate_flops(const Plan& plan);
  const Dataset& dataset_for(const Task& task);
  const Trajectory& trajectory_for(const Plan& plan);

  const Arguments& arguments_;
  const Backend& backend_;
  Rows& rows_;
  int cores_;
  std::map<std::string, std::unique_ptr<Prepared>> prepared_;  ///< by name of row
  std::map<std::string, Dataset> datasets_;                    ///< by model
  std::map<std::string, Trajectory> trajectories_;             ///< by model and batch
};

}  // namespace crossover::bench
