// SPDX-License-Identifier: Apache-2.0
// What a row of a network computes, on whatever device, and how much of that a reference can
// repeat.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "axes/axes.h"
#include "command_line/arguments.h"
#include "crossover/backend.h"
#include "crossover/catalogue.h"
#include "crossover/training.h"
#include "families/device.h"
#include "rows/row.h"

namespace crossover::bench {

class References;

struct TrainingPlan {
  Task task;
  TrainingOptions options;
  Trains trains = Trains::epochs;  ///< what an iteration is
  bool loss_every_step = false;    ///< the host waits for each
  double flops = 0;                ///< of an iteration, nearly
};

/// Each network with each batch size and precision. Throws UsageError where --data can't be read,
/// or a network is beyond counting.
std::vector<TrainingPlan> training_plans(const Arguments& arguments, Trains trains,
                                         References& references);

/// What the row trains. The same errors, and std::out_of_range where the command line knows no such
/// network.
TrainingPlan training_plan_of(const RowSpec& row, const Arguments& arguments,
                              References& references);

/// As rows of that mode train it.
TrainingPlan trained_in(TrainingPlan plan, const RowSpec& mode);

/// What the plan decides of a row.
RowSpec work_of(const TrainingPlan& plan);

/// What an iteration computes, before any backend arranges it.
Workload workload_of(const TrainingPlan& plan);

/// Of one full batch.
TrainingOptions of_one_step(TrainingOptions options, std::int64_t batch);

TrainingOptions of_one_copy(TrainingOptions options);

/// Of all rows, from one full batch: the list of all steps may be too long to make.
double approximate_flops(const TrainingPlan& plan);

double flops_of_step(const TrainingPlan& plan);

// ---- How a row is verified in the time that there is.

struct VerificationPlan {
  std::int64_t batch = 0;          ///< whose steps are compared; 0: of the row's own
  double flops_of_loss = 0;        ///< of the first loss at the row's batch
  double flops_of_steps = 0;       ///< what rows of one network share, as they do the first loss
  double flops_of_operations = 0;  ///< of each row
};

VerificationPlan verification_plan(const TrainingPlan& plan);

/// Of a pass: so many rows of its batch. Each by itself comes to the same as in any batch.
std::int64_t rows_to_verify(const TrainingPlan& plan);

/// Steps that are verified at least.
constexpr std::int64_t verified_steps = 2;
/// What the reference may take for steps beyond these, where they are cheap.
constexpr double more_steps_seconds = 1;

// ---- How it is compiled for a target.

/// The target for programs that run as one of the row was chosen to; before one was, graphs take
/// the form that is the fastest.
Target as_chosen(Target target, const Result& result);

/// The target's; that of all ranks, in which a Program is one of the whole batch; or one that loads
/// batches. Throws Unsupported.
std::shared_ptr<const Backend> backend_of(const TrainingPlan& plan, const Target& target);

}  // namespace crossover::bench
