// SPDX-License-Identifier: Apache-2.0
// A network as a row trains it, and how much of that a reference can repeat.
#pragma once

#include <cstdint>

#include "command_line/axes.h"
#include "crossover/catalogue.h"
#include "crossover/training.h"
#include "rows/device.h"
#include "rows/row.h"

namespace crossover::bench {

/// A network as it is trained, on whatever device.
struct TrainingPlan {
  Task task;
  TrainingOptions options;
  bool trains = true;  ///< else an iteration is the forward pass of a batch
  double flops = 0;    ///< of an iteration, nearly
};

/// What an iteration computes, before any backend arranges it.
Workload workload_of(const TrainingPlan& plan);

/// How a row is verified in the time that there is.
struct VerificationPlan {
  std::int64_t batch = 0;          ///< whose steps are compared; 0: of the row's own
  double flops_of_loss = 0;        ///< of the first loss at the row's batch
  double flops_of_steps = 0;       ///< what rows of one network share, as they do the first loss
  double flops_of_operations = 0;  ///< of each row
};

VerificationPlan verification_plan(const TrainingPlan& plan);

/// Steps that are verified at least.
constexpr std::int64_t verified_steps = 2;
/// What the reference may take for steps beyond these, where they are cheap.
constexpr double more_steps_seconds = 1;

/// Of one full batch.
TrainingOptions of_one_step(TrainingOptions options, std::int64_t batch);

TrainingOptions of_one_copy(TrainingOptions options);

/// Of all rows, from one full batch: the list of all steps may be too long to make.
double approximate_flops(const TrainingPlan& plan);

/// As rows of that mode train it.
TrainingPlan trained_in(TrainingPlan plan, const Configuration& mode);

double flops_of_step(const TrainingPlan& plan);

/// Of the data, so many rows.
Dataset first_rows(const Dataset& all, std::int64_t rows);

// ---- A row that several ranks train: what its losses and parameters must be, and what is verified
// of the share of one.

/// Whether shares of a batch are another training than the batch: statistics of batch normalization
/// are those of a share, and each share has a mask of its own.
bool differs_by_shares(const Workload& workload);

/// The same training in one process, which trains the shares of so many ranks one after another.
TrainingPlan in_turn(TrainingPlan plan, int ranks);

/// A step of the first rank's share of a batch, which has the most rows, without the sum over the
/// ranks: what a rank computes by itself. What they sum shows in losses and parameters.
TrainingPlan share_of_first(TrainingPlan plan, int ranks);

/// The same target with one rank.
Target alone(Target target);

// ---- A row that was made before stays what it was chosen to be.

/// The same for programs that run as one of the row was chosen to; before one was, graphs take the
/// form that is the fastest.
Target as_chosen(Target target, const Result& result);

}  // namespace crossover::bench
