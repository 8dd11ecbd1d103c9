// SPDX-License-Identifier: Apache-2.0
#include "training.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "crossover/cost.h"
#include "crossover/fingerprint.h"
#include "crossover/launches.h"
#include "crossover/product.h"
#include "crossover/reference.h"
#include "crossover/start.h"
#include "expected_seconds.h"
#include "minimum_work.h"
#include "networks.h"
#include "require_memory.h"

namespace crossover::bench {
namespace {

/// What the reference may cost a row: a few seconds.
constexpr double verified_flops = 2e10;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Of an epoch, from one full batch: the list of all steps may be too long to make.
double approximate_flops(const Model& model, TrainingOptions options) {
  const auto rows = static_cast<double>(options.rows);
  options.batch = std::min(options.batch, options.rows);
  options.rows = options.batch;
  return cost(training_epoch(model, options)).flops * rows / static_cast<double>(options.batch);
}

/// Seconds of a part of the order.
double run(Program& program, std::int64_t first, std::int64_t count) {
  const auto start = std::chrono::steady_clock::now();
  program.enqueue(first, count);
  program.wait();
  return seconds_since(start);
}

RowVerification record(const Verification& verification) {
  return {.reference = "float64 interpreter",
          .unit = "steps",
          .compared = verification.steps,
          .of = verification.steps_of,
          .tolerance = verification.tolerance.loss,
          .error = verification.loss_error,
          .parameter_tolerance = verification.tolerance.parameters,
          .parameter_error = verification.parameter_error,
          .undetermined = verification.undetermined};
}

/// Of the first epoch, whose steps the program has all run.
double mean_loss(const TrainingProgram& made) {
  const std::vector<double> losses =
      download(*made.program, made.workload, find(made.workload, "loss"));
  return std::accumulate(losses.begin(), losses.end(), 0.0) / static_cast<double>(losses.size());
}

}  // namespace

void TrainingProgram::require_finite() const {
  // Losses alone would not do: oneDNN's ReLU turns NaN into zero.
  for (const Role role : {Role::loss, Role::parameter}) {
    for (const Id id : tensors_of(workload, role)) {
      const std::vector<double> values = download(*program, workload, id);
      if (!std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); })) {
        throw std::runtime_error(
            "losses or parameters are not finite after the timed epochs: the training diverges; a "
            "smaller --lr may help");
      }
    }
  }
}

Training::Training(Arguments arguments) : arguments_(std::move(arguments)) { read_data(); }

void Training::read_data() {
  if (!arguments_.data) {
    return;
  }
  for (const Task& task : arguments_.tasks) {
    if (!task.model.reads_plain_rows()) {
      throw UsageError("--data: " + task.model.name + " does not read rows of plain numbers");
    }
    try {
      Data& data = data_[task.model.name];
      data.rows = read_csv(*arguments_.data, task.model.sample[0], task.model.classes);
      data.fingerprint = fingerprint(data.rows);
    } catch (const std::runtime_error& error) {
      throw UsageError("--data: " + std::string(error.what()) + " (" + task.model.name + " reads " +
                       std::to_string(task.model.sample[0]) + " features and " +
                       std::to_string(task.model.classes) + " classes)");
    }
  }
}

std::vector<TrainingPlan> Training::plans() const {
  std::vector<TrainingPlan> plans;
  for (const Task& task : arguments_.tasks) {
    const auto own = data_.find(task.model.name);
    const std::int64_t rows = own != data_.end() ? own->second.rows.rows : task.rows;
    for (const std::int64_t batch : batches_of(arguments_, task.batch)) {
      for (const Precision precision : arguments_.precisions) {
        const TrainingOptions options{.rows = rows,
                                      .batch = batch,
                                      .optimizer = task.optimizer,
                                      .accumulate = arguments_.accumulate,
                                      .precision = precision};
        try {
          plans.push_back(
              {.task = task, .options = options, .flops = approximate_flops(task.model, options)});
        } catch (const std::overflow_error& error) {
          throw UsageError(task.model.name + ": " + error.what());
        }
      }
    }
  }
  return plans;
}

Configuration Training::configuration(const TrainingPlan& plan) const {
  return {{"model", plan.task.model.name},
          {"batch", std::to_string(plan.options.batch)},
          {"precision", to_string(plan.options.precision)},
          {"accumulate", std::to_string(plan.options.accumulate)},
          {"loss", arguments_.choices.of("loss").front()}};
}

std::vector<Target> Training::targets(const TrainingPlan& plan, Devices& devices) const {
  const Configuration common{{"precision", to_string(plan.options.precision)},
                             {"loss", arguments_.choices.of("loss").front()}};
  return targets_of(devices, common, thread_counts(arguments_), arguments_.training_modes);
}

void Training::expect(Row& row, const TrainingPlan& plan, const Target& target) const {
  ExpectedWork work{.flops = plan.flops};
  if (!target.device->is_host) {
    TrainingOptions one_batch = plan.options;
    one_batch.batch = std::min(one_batch.batch, one_batch.rows);
    one_batch.rows = one_batch.batch;
    const auto rows = static_cast<double>(plan.options.rows);
    try {
      const Workload step = fuse(training_epoch(plan.task.model, one_batch));
      work.launches = rows / static_cast<double>(one_batch.rows) *
                      static_cast<double>(cuda_launches(step, target.options));
    } catch (const std::overflow_error&) {
      work.launches = 0;  // no memory holds it: the row itself will say so
    }
    if (target.options.placement != Placement::resident) {
      work.bytes_copied =
          rows * static_cast<double>(elements(plan.task.model.sample)) * sizeof(float);
    }
  }
  row.expected_seconds =
      expected_seconds(*target.device, target.options.threads, arguments_.sweep.repetitions,
                       arguments_.sweep.min_time_seconds, work);
  row.reference = row_name(joined({{"family", "Epoch"}}, configuration(plan)));
  row.reference_seconds = expected_reference_seconds(std::min(plan.flops, verified_flops));
}

TrainingProgram Training::prepare(const TrainingPlan& plan, const Target& target, Result& result) {
  Workload epoch = lowered(plan, target);
  const Data& data = data_of(plan.task);
  const std::uint64_t identity = fingerprint(fingerprint(epoch), data.fingerprint);
  const Subject subject{
      .plan = plan, .epoch = std::move(epoch), .data = data, .fingerprint = identity};
  const auto verified_steps = std::ssize(trajectory_of(subject).losses);

  TrainingProgram made{.workload = target.device->backend->optimize(subject.epoch), .program = {}};
  const auto start = std::chrono::steady_clock::now();
  made.program = target.device->backend->compile(made.workload, target.options);
  set_data(*made.program, made.workload, data.rows);
  restart(*made.program, made.workload);
  run(*made.program, 0, verified_steps);
  // With what a process waits for before it can call the device at all.
  double first_call_seconds =
      seconds_since(start) + target.device->backend->describe().start_seconds;
  result.verification = record(verified(made, subject));
  result.verification.take(made.program->arithmetic(), target.options.precision);
  first_call_seconds += run(*made.program, verified_steps, made.steps() - verified_steps);

  const Cost counted = cost(subject.epoch);
  result.workload = hexadecimal(identity);
  result.label = optimizer_label(plan.options.optimizer);
  const MinimumWork least =
      minimum_work_of(made.workload, counted, *made.program, target.options, *target.device);
  result.minimum_work = least;
  result.counters = target.counters;
  result.counters.merge(
      std::map<std::string, double>{{"params", static_cast<double>(parameter_count(made.workload))},
                                    {"batch", static_cast<double>(plan.options.batch)},
                                    {"rows", static_cast<double>(plan.options.rows)},
                                    {"steps", static_cast<double>(made.steps())},
                                    {"flops", counted.flops},
                                    {"bytes", counted.bytes},
                                    {"products", static_cast<double>(product_count(subject.epoch))},
                                    {"launches", static_cast<double>(made.program->launches())},
                                    {"first_call_seconds", first_call_seconds},
                                    {"loss_first_epoch", mean_loss(made)}});
  if (least.bytes_to_device > 0) {
    result.counters["bytes_to_device"] = least.bytes_to_device;
  }
  return made;
}

/// Throws OutOfMemory where the host's memory does not hold what the row needs.
Workload Training::lowered(const TrainingPlan& plan, const Target& target) const {
  const auto require = [&](double needed) {
    require_memory(arguments_, needed, "to train and verify " + plan.task.model.name);
  };
  const auto rows = static_cast<double>(plan.options.rows);
  const double data = rows * static_cast<double>(elements(plan.task.model.sample)) * sizeof(double);
  const double order = rows / static_cast<double>(plan.options.batch) * sizeof(Run);
  // First what can be told without the list of steps, which may be too large itself; then all of
  // it. Data and order exist twice for a moment: with the generator or the reference, and on the
  // way to the program.
  require(2 * (data + order));
  Workload epoch = training_epoch(plan.task.model, plan.options);
  require(static_cast<double>(target.host_bytes(epoch)) +
          static_cast<double>(reference_bytes(epoch)) + 2 * (data + order));
  return epoch;
}

const Training::Data& Training::data_of(const Task& task) {
  const auto [at, is_new] = data_.try_emplace(task.model.name);
  if (is_new) {
    at->second.rows = task.generate(task.rows);
    at->second.fingerprint = fingerprint(at->second.rows);
  }
  return at->second;
}

/// `made` has just run the trajectory's steps from the start, and has in the end.
Verification Training::verified(const TrainingProgram& made, const Subject& subject) {
  const Trajectory& trajectory = trajectory_of(subject);
  const Precision precision = subject.plan.options.precision;
  try {
    return verify(*made.program, made.workload, trajectory, precision);
  } catch (const Mismatch& mismatch) {
    try {
      Reference reference(subject.epoch);
      set_data(reference, subject.data.rows);
      return verify_between_kinks(*made.program, made.workload, reference,
                                  std::ssize(trajectory.losses), precision);
    } catch (const Mismatch&) {
      throw Mismatch(mismatch);  // what was found first is what is wrong
    }
  }
}

const Trajectory& Training::trajectory_of(const Subject& subject) {
  const auto at = trajectories_.find(subject.fingerprint);
  if (at != trajectories_.end()) {
    return at->second;
  }
  return trajectories_[subject.fingerprint] = reference_trajectory(
             subject.epoch, subject.data.rows, steps_to_verify(subject.epoch, verified_flops));
}

}  // namespace crossover::bench
