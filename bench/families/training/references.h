// SPDX-License-Identifier: Apache-2.0
// What rows of one network share, each computed once: the data, and what a reference came to.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "crossover/catalogue.h"
#include "crossover/dataset.h"
#include "crossover/verify.h"
#include "families/training/plan.h"

namespace crossover::bench {

struct TrainingData {
  Dataset rows;
  std::uint64_t fingerprint = 0;
};

/// An iteration as it is computed, however a backend optimizes it, and what it trains on.
struct Subject {
  TrainingPlan plan;
  Workload workload;
  TrainingData data;              ///< none before References::complete()
  std::uint64_t fingerprint = 0;  ///< of both
  std::int64_t shares = 1;        ///< whose steps, one after another, are one of the training
};

class References {
 public:
  /// `csv`: the user's file of rows; none: networks train on their own data.
  explicit References(std::optional<std::string> csv) : csv_(std::move(csv)) {}

  /// The user's rows, as the network reads them; null without a file. UsageError where it can't.
  const TrainingData* own_data(const Task& task);

  /// Gives it the data that it trains on.
  void complete(Subject& subject);
  [[nodiscard]] Subject subject_of(const TrainingPlan& plan);

  /// As many steps as a reference can repeat in a few seconds, `verified_steps` at least.
  const Trajectory& trajectory_of(const Subject& subject);
  double first_loss_of(const Subject& subject);
  /// Of a pass those of rows_to_verify().
  const std::vector<double>& outputs_of(const Subject& subject);

 private:
  std::optional<std::string> csv_;
  std::map<std::string, TrainingData> data_;  ///< the user's, by model
  // By fingerprint:
  std::map<std::uint64_t, Trajectory> trajectories_;
  std::map<std::uint64_t, double> first_losses_;
  std::map<std::uint64_t, std::vector<double>> outputs_;
};

/// What a reference computes of a pass.
Workload pass_to_verify(const TrainingPlan& plan);

}  // namespace crossover::bench
