// SPDX-License-Identifier: Apache-2.0
#include "rows/training.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <type_traits>

#include "command_line/networks.h"
#include "crossover/cost.h"
#include "crossover/cpu_threads.h"
#include "crossover/fingerprint.h"
#include "crossover/product.h"
#include "crossover/reference.h"
#include "crossover/start.h"
#include "rows/expected_seconds.h"
#include "rows/minimum_work.h"
#include "rows/require_memory.h"
#include "run/say.h"
#include "run/spent.h"

namespace crossover::bench {
namespace {

// What the reference may cost a row: steps beyond the second, where they are cheap, and the most
// that it may take before a smaller batch stands for the row's own.
constexpr double more_steps_seconds = 1;
constexpr double most_verification_seconds = 6;
/// About what choosing an execution costs a row, and some steps.
constexpr double choice_seconds = 0.2;
/// From here on a wait is announced.
constexpr double long_seconds = 3;

constexpr std::int64_t verified_steps = 2;
constexpr std::int64_t least_batch = 2;

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

/// Of one full batch.
TrainingOptions of_one_step(TrainingOptions options, std::int64_t batch) {
  options.batch = std::min(batch, options.rows);
  options.rows = options.batch;
  return options;
}

/// Of all rows, from one full batch: the list of all steps may be too long to make.
double approximate_flops(const Model& model, const TrainingOptions& options) {
  const TrainingOptions step = of_one_step(options, options.batch);
  return cost(training_epoch(model, step)).flops * static_cast<double>(options.rows) /
         static_cast<double>(step.batch);
}

double flops_of_step(const TrainingPlan& plan) {
  const auto batch = static_cast<double>(std::min(plan.options.batch, plan.options.rows));
  return plan.flops * batch / static_cast<double>(plan.options.rows);
}

/// How a row is verified in the time that there is.
struct VerificationPlan {
  std::int64_t batch = 0;          ///< whose steps are compared; 0: of the row's own
  double flops_of_loss = 0;        ///< of the first loss at the row's batch
  double flops_of_steps = 0;       ///< what rows of one network share, as they do the first loss
  double flops_of_operations = 0;  ///< of each row
};

VerificationPlan verification_plan(const TrainingPlan& plan) {
  const double of_step = flops_of_step(plan);
  const double of_two = static_cast<double>(verified_steps) * of_step;
  const double affordable = reference_flops_per_second * most_verification_seconds;
  const std::int64_t own = std::min(plan.options.batch, plan.options.rows);
  if (2 * of_two <= affordable || own <= least_batch) {
    const double more = reference_flops_per_second * more_steps_seconds;
    return {.flops_of_steps = std::max(of_two, std::min(plan.flops, more)),
            .flops_of_operations = of_two};
  }
  constexpr double forward_share = 1.0 / 3;  // two of the three products of a layer are gradients
  const double of_loss = forward_share * of_step;
  std::int64_t batch = least_batch;
  const auto of_smaller = [&](std::int64_t rows) {
    return of_two * static_cast<double>(rows) / static_cast<double>(own);
  };
  while (2 * batch < own && of_loss + 2 * of_smaller(2 * batch) <= affordable) {
    batch *= 2;
  }
  return {.batch = batch,
          .flops_of_loss = of_loss,
          .flops_of_steps = of_smaller(batch),
          .flops_of_operations = of_smaller(batch)};
}

/// How the device can execute the network. The list of all steps may be too long to make: two
/// batches show whether their gradients are added up.
std::vector<Execution> executions_on(const Backend& backend, const TrainingPlan& plan) {
  TrainingOptions options = of_one_step(plan.options, plan.options.batch);
  options.rows *= std::min<std::int64_t>(2, options.accumulate);
  return backend.executions(training_epoch(plan.task.model, options), options.precision);
}

bool has(const std::vector<Execution>& all, const Configuration& mode) {
  return std::find(all.begin(), all.end(), options_of(mode).execution) != all.end();
}

/// The same for programs that run as one of the row was chosen to; before one was, graphs take the
/// form that is the fastest.
Target as_chosen(Target target, const Result& result) {
  if (!result.chosen.empty()) {
    const CompileOptions options = options_of(result.chosen);
    target.options.execution = options.execution;
    target.options.threads = options.threads;
  }
  target.options.graph_form = result.graph_form;
  return target;
}

void announce(const std::string& what, double flops) {
  const double seconds = expected_reference_seconds(flops);
  if (seconds >= long_seconds) {
    say("verifying " + what + ": about " + std::to_string(std::lround(seconds)) + " s");
  }
}

Dataset first_rows(const Dataset& all, std::int64_t rows) {
  const auto part = [&](const auto& values) {
    const auto count = std::ssize(values) / all.rows * rows;
    return std::remove_cvref_t<decltype(values)>(values.begin(), values.begin() + count);
  };
  return {.source = all.source,
          .sample = all.sample,
          .rows = rows,
          .inputs = part(all.inputs),
          .labels = part(all.labels)};
}

RowVerification record(const Verification& verification, const OperationVerification& operations) {
  return {.reference = "float64 interpreter",
          .unit = "steps",
          .compared = verification.steps,
          .of = verification.steps_of,
          .tolerance = verification.tolerance.loss,
          .error = verification.loss_error,
          .parameter_tolerance = verification.tolerance.parameters,
          .parameter_error = verification.parameter_error,
          .operation_tolerance = operations.tolerance,
          .operation_error = operations.error,
          .undetermined = verification.undetermined};
}

/// Of an iteration that the program has just run.
double mean_loss(Program& program, const Workload& workload) {
  const std::vector<double> losses = download(program, workload, find(workload, "loss"));
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
            "losses or parameters are not finite after the timed steps: the training diverges; a "
            "smaller --lr may help");
      }
    }
  }
}

Training::Training(Arguments arguments, Iteration iteration)
    : arguments_(std::move(arguments)), iteration_(iteration) {
  read_data();
}

void Training::read_data() {
  if (!arguments_.data) {
    return;
  }
  for (const Task& task :
       iteration_ == Iteration::step ? arguments_.minibatch_tasks : arguments_.tasks) {
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
  const bool of_steps = iteration_ == Iteration::step;
  for (const Task& task : of_steps ? arguments_.minibatch_tasks : arguments_.tasks) {
    const auto own = data_.find(task.model.name);
    for (const std::int64_t batch : batches_of(arguments_, task.batch)) {
      const std::int64_t rows = own != data_.end() ? own->second.rows.rows
                                : of_steps         ? batch
                                                   : task.rows;
      for (const Precision precision : arguments_.precisions) {
        TrainingOptions options{.rows = rows,
                                .batch = batch,
                                .optimizer = task.optimizer,
                                .accumulate = arguments_.accumulate,
                                .precision = precision};
        if (of_steps) {
          options = of_one_step(options, batch);
          options.accumulate = 1;
        }
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
  return {{"family", iteration_ == Iteration::step ? "Minibatch" : "Epoch"},
          {"model", plan.task.model.name},
          {"batch", std::to_string(plan.options.batch)},
          {"precision", to_string(plan.options.precision)},
          {"accumulate", std::to_string(plan.options.accumulate)},
          {"loss", arguments_.choices.of("loss").front()}};
}

std::vector<Target> Training::targets(const TrainingPlan& plan, Devices& devices) const {
  const Configuration common{{"precision", to_string(plan.options.precision)},
                             {"loss", arguments_.choices.of("loss").front()}};
  const auto gpus = devices.gpus();
  return targets_of(
      devices, common, threads(), cpu_modes(plan, *devices.cpu().backend),
      gpus.empty() ? std::vector<Configuration>{} : gpu_modes(plan, *gpus.front().backend));
}

/// Of the sweep's executions a network has those that the CPU can run it with, and eager for the
/// others; those that were asked for become rows that say so.
std::vector<Configuration> Training::cpu_modes(const TrainingPlan& plan, const Backend& cpu) const {
  const std::vector<Configuration>& modes = arguments_.cpu_modes.of_training;
  const bool asked_for =
      arguments_.choices.has_on(find_axis("execution"), AxisDevices::cpu, /*training=*/true);
  if (asked_for) {
    return modes;
  }
  const std::vector<Execution> all = executions_on(cpu, plan);
  std::vector<Configuration> possible;
  for (Configuration mode : modes) {
    if (!has(all, mode)) {
      std::erase_if(mode, [](const auto& pair) { return pair.first == "execution"; });
      mode = joined({{"execution", "eager"}}, mode);
    }
    if (std::find(possible.begin(), possible.end(), mode) == possible.end()) {
      possible.push_back(mode);
    }
  }
  return possible;
}

/// Of the sweep's executions few networks have a persistent one; rows that were asked for say why.
std::vector<Configuration> Training::gpu_modes(const TrainingPlan& plan, const Backend& gpu) const {
  std::vector<Configuration> modes = arguments_.gpu_modes.of_training;
  const bool asked_for =
      arguments_.choices.has_on(find_axis("execution"), AxisDevices::gpu, /*training=*/true);
  if (!asked_for) {
    const std::vector<Execution> all = executions_on(gpu, plan);
    std::erase_if(modes, [&](const Configuration& mode) { return !has(all, mode); });
  }
  if (iteration_ == Iteration::step) {
    // A graph, or a kernel, is that of the step. A large step hides how its batch is copied, so
    // that the best and no copy do, unless others are asked for.
    const bool every_placement =
        arguments_.sweep.every_minibatch_placement || arguments_.choices.has("data");
    std::erase_if(modes, [&](const Configuration& mode) {
      const CompileOptions options = options_of(mode);
      return options.execution == Execution::graph_epoch ||
             options.execution == Execution::persistent ||
             (!every_placement &&
              (options.placement == Placement::pageable || options.placement == Placement::pinned));
    });
  }
  return modes;
}

std::vector<int> Training::threads() const {
  return thread_counts(arguments_, iteration_ == Iteration::epoch
                                       ? arguments_.sweep.threads
                                       : arguments_.sweep.minibatch_threads);
}

void Training::expect(Row& row, const TrainingPlan& plan, const Target& target) const {
  ExpectedWork work{.flops = plan.flops};
  const auto rows = static_cast<double>(plan.options.rows);
  if (!target.device->is_host) {
    const TrainingOptions one_batch = of_one_step(plan.options, plan.options.batch);
    try {
      const Backend& gpu = *target.device->backend;
      const Estimate estimate = gpu.estimate(
          gpu.optimize(training_epoch(plan.task.model, one_batch), target.options), target.options);
      work.launches = static_cast<double>(estimate.launches);
      work.multiprocessors = estimate.multiprocessors;
      if (target.options.execution != Execution::persistent) {
        work.launches *= rows / static_cast<double>(one_batch.rows);
      }
    } catch (const std::overflow_error&) {
      work.launches = 0;  // no memory holds it: the row itself will say so
    } catch (const Unsupported&) {
      work.launches = 0;  // and so will this one
    }
    if (target.options.placement != Placement::resident) {
      work.bytes_copied =
          rows * static_cast<double>(elements(plan.task.model.sample)) * sizeof(float);
    }
  }
  const Effort& effort = arguments_.sweep.effort;
  const VerificationPlan verification = verification_plan(plan);
  work.flops_of_reference = verification.flops_of_operations;
  row.expected = expected_seconds(
      *row.device, target.options.threads,
      row.repetitions > 0 ? row.repetitions : effort.repetitions,
      row.min_time_seconds > 0 ? row.min_time_seconds : effort.min_time_seconds, work);
  if (target.options.execution == Execution::automatic) {
    constexpr double steps = 4;
    row.expected.all +=
        choice_seconds + steps * flops_of_step(plan) / expected_flops_of_a_thread_per_second;
  }
  row.reference = row_name(configuration(plan));
  row.reference_seconds =
      expected_reference_seconds(verification.flops_of_loss + verification.flops_of_steps);
}

TrainingProgram Training::prepare(const TrainingPlan& plan, const Target& asked, Result& result) {
  // A row that is made again for more repetitions stays what it was chosen to be.
  const Target target = as_chosen(asked, result);
  require_memory_for_data(plan);
  Workload workload = training_epoch(plan.task.model, plan.options);
  const Backend& backend = *target.device->backend;

  TrainingProgram made{.workload = backend.optimize(workload, target.options), .program = {}};
  const auto planning = std::chrono::steady_clock::now();
  const std::unique_ptr<Plan> planned = backend.plan(made.workload, target.options);
  const double planning_seconds = seconds_since(planning);
  require_memory_for(plan, target, workload, *planned);
  const Subject subject = subject_of(plan, std::move(workload));
  const auto start = std::chrono::steady_clock::now();
  made.program = planned->instantiate();
  made.bytes = made.program->facts().bytes;
  set_data(*made.program, made.workload, subject.data.rows);
  restart(*made.program, made.workload);
  made.program->enqueue(0, made.steps());
  made.program->wait();
  // With what a process waits for before it can call the device at all.
  const double first_call_seconds =
      planning_seconds + seconds_since(start) + backend.describe().start_seconds;
  made.first_loss = mean_loss(*made.program, made.workload);
  const Instant verifying = std::chrono::steady_clock::now();
  if (const auto choice = made.program->facts().chosen) {
    result.chosen = configuration_of(*choice);
  }
  result.graph_form = made.program->facts().graph_form;
  result.verification = verified(made, subject, as_chosen(target, result));
  const double verification_seconds = seconds_since(verifying);
  result.verification_seconds += verification_seconds;
  result.verification.take(made.program->facts().arithmetic, target.options.precision);

  const Cost counted = cost(subject.workload);
  result.workload = hexadecimal(subject.fingerprint);
  result.label = optimizer_label(plan.options.optimizer);
  const MinimumWork least =
      minimum_work_of(made.workload, counted, *made.program, target.options, *target.device);
  result.minimum_work = least;
  result.counters = target.counters;
  result.counters.merge(std::map<std::string, double>{
      {"params", static_cast<double>(parameter_count(made.workload))},
      {"batch", static_cast<double>(plan.options.batch)},
      {"flops", counted.flops},
      {"bytes", counted.bytes},
      {"products", static_cast<double>(product_count(subject.workload))},
      {"launches", static_cast<double>(made.program->facts().launches)},
      {"first_call_seconds", first_call_seconds},
      {"verification_seconds", verification_seconds}});
  if (least.bytes_to_device > 0) {
    result.counters["bytes_to_device"] = least.bytes_to_device;
  }
  if (const auto loops = made.program->facts().graph_loops) {
    result.counters["graph_loops"] = static_cast<double>(*loops);
  }
  if (result.graph_form) {
    result.counters["graph_streams"] = result.graph_form->streams;
  }
  return made;
}

/// Of data and order, which exist twice for a moment: with the generator or the reference, and on
/// the way to the program.
double Training::bytes_of_data(const TrainingPlan& plan) {
  const auto rows = static_cast<double>(plan.options.rows);
  const double data = rows * static_cast<double>(elements(plan.task.model.sample)) * sizeof(double);
  const double order = rows / static_cast<double>(plan.options.batch) * sizeof(Run);
  return 2 * (data + order);
}

void Training::require_memory(const TrainingPlan& plan, double bytes) const {
  bench::require_memory(arguments_, bytes, "to train and verify " + plan.task.model.name);
}

/// Throws OutOfMemory by what can be told without the list of steps, which may be too large itself.
void Training::require_memory_for_data(const TrainingPlan& plan) const {
  require_memory(plan, bytes_of_data(plan));
}

/// Throws OutOfMemory where the host's memory does not hold what the row needs. `planned`: the
/// Workload on the target.
void Training::require_memory_for(const TrainingPlan& plan, const Target& target,
                                  const Workload& workload, const Plan& planned) const {
  const VerificationPlan verification = verification_plan(plan);
  double bytes = bytes_of_data(plan);
  // Beside the program that will be timed there is one that keeps all tensors, to verify them.
  if (verification.batch == 0) {
    bytes += static_cast<double>(reference_bytes(workload));
    if (target.device->is_host) {  // a GPU tells of its own
      bytes += static_cast<double>(planned.bytes() + planned.bytes_keeping_activations());
    }
  } else {
    const Workload verified =
        training_epoch(plan.task.model, of_one_step(plan.options, verification.batch));
    bytes += static_cast<double>(
        std::max(reference_bytes(forward_part(workload)), reference_bytes(verified)));
    if (target.device->is_host) {
      const Backend& cpu = *target.device->backend;
      const auto keeping = cpu.plan(cpu.optimize(verified, target.options), target.options);
      bytes += static_cast<double>(planned.bytes() + keeping->bytes_keeping_activations());
    }
  }
  require_memory(plan, bytes);
}

Training::Data Training::data_of(const Task& task, std::int64_t rows) const {
  const auto own = data_.find(task.model.name);
  if (own == data_.end()) {
    Data data{.rows = task.generate(rows)};
    data.fingerprint = fingerprint(data.rows);
    return data;
  }
  if (own->second.rows.rows == rows) {
    return own->second;
  }
  Data data{.rows = first_rows(own->second.rows, rows)};
  data.fingerprint = fingerprint(data.rows);
  return data;
}

Training::Subject Training::subject_of(const TrainingPlan& plan, Workload workload) const {
  Data data = data_of(plan.task, plan.options.rows);
  const std::uint64_t identity = fingerprint(fingerprint(workload), data.fingerprint);
  return {.plan = plan,
          .workload = std::move(workload),
          .data = std::move(data),
          .fingerprint = identity};
}

Verification Training::verified(Program& program, const Workload& workload,
                                const Subject& subject) {
  const Trajectory& trajectory = trajectory_of(subject);
  const Precision precision = subject.plan.options.precision;
  try {
    return verify(program, workload, trajectory, precision);
  } catch (const Mismatch& mismatch) {
    try {
      Reference reference(subject.workload);
      set_data(reference, subject.data.rows);
      return verify_between_kinks(program, workload, reference, std::ssize(trajectory.losses),
                                  precision);
    } catch (const Mismatch&) {
      throw Mismatch(mismatch);  // what was found first is what is wrong
    }
  }
}

/// Of the very program that will be timed its steps, or its first loss and then steps of a smaller
/// batch in a program of their own; and each operation, in one that keeps all tensors.
RowVerification Training::verified(TrainingProgram& made, const Subject& subject,
                                   const Target& target) {
  const VerificationPlan how = verification_plan(subject.plan);
  if (how.batch == 0) {
    const Verification steps = verified(*made.program, made.workload, subject);
    return record(steps, operations_verified(subject, target));
  }
  const Verification first = verify_first_loss(*made.program, made.workload, first_loss_of(subject),
                                               subject.plan.options.precision);
  TrainingPlan plan = subject.plan;
  plan.options = of_one_step(plan.options, how.batch);
  plan.flops = approximate_flops(plan.task.model, plan.options);
  const Subject smaller = subject_of(plan, training_epoch(plan.task.model, plan.options));
  const Workload workload = target.device->backend->optimize(smaller.workload, target.options);
  const auto program = target.device->backend->compile(workload, target.options);
  set_data(*program, workload, smaller.data.rows);
  Verification steps = verified(*program, workload, smaller);
  steps.loss_error = std::max(steps.loss_error, first.loss_error);
  RowVerification both = record(steps, operations_verified(smaller, target));
  both.batch = how.batch;
  return both;
}

OperationVerification Training::operations_verified(const Subject& subject, const Target& target) {
  const Workload workload =
      target.device->backend->optimize(with_visible_updates(subject.workload), target.options);
  CompileOptions options = target.options;
  options.keep_activations = true;
  const auto program = target.device->backend->compile(workload, options);
  set_data(*program, workload, subject.data.rows);
  Reference reference(workload);
  set_data(reference, subject.data.rows);
  return verify_operations(*program, reference, verified_steps, subject.plan.options.precision);
}

const Trajectory& Training::trajectory_of(const Subject& subject) {
  const auto at = trajectories_.find(subject.fingerprint);
  if (at != trajectories_.end()) {
    return at->second;
  }
  const std::int64_t steps =
      steps_to_verify(subject.workload, reference_flops_per_second * more_steps_seconds);
  if (bytes_of(trajectories_) > most_trajectory_bytes) {
    trajectories_.clear();  // networks mostly come one after the other
  }
  announce(row_name(in_order(configuration(subject.plan))),
           static_cast<double>(steps) * flops_of_step(subject.plan));
  return trajectories_[subject.fingerprint] =
             reference_trajectory(subject.workload, subject.data.rows, steps);
}

double Training::first_loss_of(const Subject& subject) {
  const auto at = first_losses_.find(subject.fingerprint);
  if (at != first_losses_.end()) {
    return at->second;
  }
  announce("the first loss of " + row_name(in_order(configuration(subject.plan))),
           verification_plan(subject.plan).flops_of_loss);
  return first_losses_[subject.fingerprint] =
             reference_first_loss(subject.workload, subject.data.rows);
}

}  // namespace crossover::bench
