// SPDX-License-Identifier: Apache-2.0
#include "families/training/references.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <type_traits>

#include "base/say.h"
#include "crossover/fingerprint.h"
#include "crossover/product.h"
#include "crossover/reference.h"
#include "crossover/shared_training.h"
#include "families/work.h"

namespace crossover::bench {
namespace {

/// From here on a wait is announced.
constexpr double long_seconds = 3;

/// Of trajectories that rows to come may need.
constexpr double most_trajectory_bytes = 512e6;

double bytes_of(const std::map<std::uint64_t, Trajectory>& trajectories) {
  double values = 0;
  for (const auto& [fingerprint, trajectory] : trajectories) {
    for (const auto& [id, parameter] : trajectory.parameters) {
      values += static_cast<double>(parameter.size());
    }
  }
  return values * sizeof(double);
}

void announce(const std::string& what, double flops) {
  const double seconds = expected_reference_seconds(flops);
  if (seconds >= long_seconds) {
    say("verifying " + what + ": about " + std::to_string(std::lround(seconds)) + " s");
  }
}

/// "; these rows fit --mlp=5,32,3", or nothing where they fit none.
std::string network_that_fits(const std::string& data) {
  try {
    const CsvShape shape = shape_of_csv(data);
    return "; these rows fit --mlp=" + std::to_string(shape.features) + ",32," +
           std::to_string(shape.classes);
  } catch (const std::runtime_error&) {
    return "";
  }
}

/// Of the data, so many rows.
Dataset first_rows(const Dataset& all, std::int64_t rows) {
  const auto part = [&](const auto& values) {
    const auto count = std::ssize(values) / all.rows * rows;
    return std::remove_cvref_t<decltype(values)>(values.begin(), values.begin() + count);
  };
  return {.source = all.source,
          .sample = all.sample,
          .rows = rows,
          .inputs = part(all.inputs),
          .labels = part(all.labels),
          .targets = part(all.targets)};
}

}  // namespace

const TrainingData* References::own_data(const Task& task) {
  if (!csv_) {
    return nullptr;
  }
  const auto [at, is_new] = data_.try_emplace(task.model.name);
  if (!is_new) {
    return &at->second;
  }
  if (!task.model.reads_plain_rows()) {
    throw UsageError("--data: " + task.model.name +
                     " does not read rows of plain numbers with a class");
  }
  try {
    at->second.rows = read_csv(*csv_, task.model.sample[0], task.model.classes);
    at->second.fingerprint = fingerprint(at->second.rows);
  } catch (const std::runtime_error& error) {
    throw UsageError("--data: " + std::string(error.what()) + " (" + task.model.name + " reads " +
                     std::to_string(task.model.sample[0]) + " features and " +
                     std::to_string(task.model.classes) + " classes" + network_that_fits(*csv_) +
                     ")");
  }
  return &at->second;
}

void References::complete(Subject& subject) {
  const TrainingPlan& plan = subject.plan;
  const std::int64_t rows = plan.options.rows;
  const TrainingData* const own = own_data(plan.task);
  if (own != nullptr && own->rows.rows == rows) {
    subject.data = *own;
  } else {
    subject.data.rows = own == nullptr ? plan.task.generate(rows) : first_rows(own->rows, rows);
    subject.data.fingerprint = fingerprint(subject.data.rows);
  }
  subject.fingerprint = fingerprint(fingerprint(subject.workload), subject.data.fingerprint);
}

Subject References::subject_of(const TrainingPlan& plan) {
  Subject subject{.plan = plan, .workload = workload_of(plan), .data = {}};
  complete(subject);
  return subject;
}

const Trajectory& References::trajectory_of(const Subject& subject) {
  const auto at = trajectories_.find(subject.fingerprint);
  if (at != trajectories_.end()) {
    return at->second;
  }
  const std::int64_t copies = subject.plan.options.copies;
  std::int64_t steps =
      std::max(verified_steps * copies,
               steps_to_verify(subject.workload, reference_flops_per_second * more_steps_seconds) /
                   subject.shares);
  steps -= steps % copies;  // as many of each, which may run at once
  if (subject.workload.epoch != none && steps == std::ssize(subject.workload.order)) {
    ++steps;  // into the order of the next epoch
  }
  if (bytes_of(trajectories_) > most_trajectory_bytes) {
    trajectories_.clear();  // networks mostly come one after the other
  }
  announce(row_name(work_of(subject.plan)),
           static_cast<double>(steps) * flops_of_step(subject.plan));
  return trajectories_[subject.fingerprint] =
             reference_trajectory(subject.workload, subject.data.rows, steps, subject.shares);
}

double References::first_loss_of(const Subject& subject) {
  const auto at = first_losses_.find(subject.fingerprint);
  if (at != first_losses_.end()) {
    return at->second;
  }
  announce("the first loss of " + row_name(work_of(subject.plan)),
           verification_plan(subject.plan).flops_of_loss);
  return first_losses_[subject.fingerprint] =
             reference_first_loss(subject.workload, subject.data.rows, subject.shares);
}

Workload pass_to_verify(const TrainingPlan& plan) {
  return forward_pass(plan.task.model, rows_to_verify(plan), plan.options.precision);
}

const std::vector<double>& References::outputs_of(const Subject& subject) {
  std::vector<double>& known = outputs_[subject.fingerprint];
  if (known.empty()) {
    known = reference_outputs(pass_to_verify(subject.plan),
                              first_rows(subject.data.rows, rows_to_verify(subject.plan)));
  }
  return known;
}

}  // namespace crossover::bench
