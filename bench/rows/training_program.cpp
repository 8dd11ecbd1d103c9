// SPDX-License-Identifier: Apache-2.0
// How a Training compiles a network for a target and verifies it there.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string>

#include "base/say.h"
#include "base/times.h"
#include "command_line/networks.h"
#include "crossover/cost.h"
#include "crossover/fingerprint.h"
#include "crossover/product.h"
#include "crossover/reference.h"
#include "crossover/shared_training.h"
#include "crossover/start.h"
#include "rows/device.h"
#include "rows/training.h"
#include "rows/work.h"

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

RowVerification record(const Verification& verification, const OperationVerification& operations) {
  RowVerification found{.reference = "float64 interpreter",
                        .unit = "steps",
                        .compared = verification.steps,
                        .of = verification.steps_of,
                        .tolerance = verification.tolerance.loss,
                        .error = verification.loss_error,
                        .more = {{"parameter_tolerance", verification.tolerance.parameters},
                                 {"parameter_error", verification.parameter_error},
                                 {"operation_tolerance", operations.tolerance},
                                 {"operation_error", operations.error}}};
  if (verification.undetermined > 0) {
    found.more["undetermined_updates"] = verification.undetermined;
  }
  if (operations.passes_at_zero) {
    found.more["relu_passes_zero"] = true;
  }
  return found;
}

/// Whether shares of a batch are another training than the batch: statistics of batch normalization
/// are those of a share, and each share has a mask of its own.
bool differs_by_shares(const Workload& workload) {
  const std::vector<Op>& ops = workload.steps.front().ops;
  return std::ranges::any_of(ops, [](const Op& op) {
    const auto* norm = std::get_if<Norm>(&op);
    return std::holds_alternative<Dropout>(op) ||
           (norm != nullptr && norm->kind == NormKind::batch);
  });
}

}  // namespace

void TrainingProgram::require_finite() const {
  // Losses alone would not do: oneDNN's ReLU turns NaN into zero.
  for (const Role role : {Role::loss, Role::parameter}) {
    for (const Id id : tensors_of(workload, role)) {
      const std::vector<double> values = download(*program, workload, id);
      if (!std::ranges::all_of(values, [](double v) { return std::isfinite(v); })) {
        throw std::runtime_error(
            "losses or parameters are not finite after the timed steps: the training diverges; a "
            "smaller --lr may help");
      }
    }
  }
}

FirstSteps TrainingProgram::first_steps(std::int64_t count) const {
  const std::int64_t at_once = program->facts().copies;
  count = std::clamp<std::int64_t>((count + at_once - 1) / at_once * at_once, 1, steps());
  restart(*program, workload);
  program->enqueue(0, count);
  program->wait();
  FirstSteps found{.losses = download(*program, workload, find(workload, "loss")), .norms = {}};
  found.losses.resize(static_cast<std::size_t>(count));
  for (const Id id : tensors_of(workload, Role::parameter)) {
    const std::vector<double> values = download(*program, workload, id);
    found.norms.push_back(
        std::sqrt(std::inner_product(values.begin(), values.end(), values.begin(), 0.0)));
  }
  return found;
}

bool TrainingProgram::reproduces(const FirstSteps& verified, Precision precision) const {
  const Tolerance tolerance = tolerance_for(workload, precision, program->facts().arithmetic);
  const FirstSteps own = first_steps(std::ssize(verified.losses));
  const auto are_close = [](const std::vector<double>& ones, const std::vector<double>& others,
                            double allowed, double least) {
    return std::ranges::equal(ones, others, [&](double one, double other) {
      return std::abs(one - other) <= allowed * std::max(std::abs(other), least);
    });
  };
  constexpr double small_loss = 0.1;  // as in verification: relative to this
  return are_close(own.losses, verified.losses, tolerance.loss, small_loss) &&
         are_close(own.norms, verified.norms, tolerance.parameters, 0);
}

CompiledNetwork Training::compile(
    const Backend& backend, const Workload& workload, const Target& target, Result& result,
    const std::function<void(const Plan& planned)>& make_data,
    const std::function<void(Program& program, const Workload& own)>& set_data) {
  CompiledNetwork made{.workload = backend.optimize(workload, target.options), .program = {}};
  const Instant planning = std::chrono::steady_clock::now();
  const std::unique_ptr<Plan> planned = backend.plan(made.workload, target.options);
  const double planning_seconds = seconds_since(planning);
  make_data(*planned);
  const Instant start = std::chrono::steady_clock::now();
  made.program = planned->instantiate();
  const ProgramFacts& facts = made.program->facts();
  if (facts.chosen) {
    result.chosen = spec_of(*facts.chosen, target.device->axes());
    made.workload = backend.optimize(workload, as_chosen(target, result).options);
  }
  set_data(*made.program, made.workload);
  restart(*made.program, made.workload);
  made.program->enqueue(0, std::ssize(made.workload.order));
  made.program->wait();
  result.counters = target.counters;
  // With what a process waits for before it can call the device at all.
  result.counters["first_call_seconds"] =
      planning_seconds + seconds_since(start) + backend.describe().start_seconds;
  result.graph_form = facts.graph_form;
  result.convolutions = facts.convolutions;
  return made;
}

void Training::count(const TrainingPlan& plan, const Target& target, const Workload& workload,
                     const Workload& compiled, const Program& program, Result& result) {
  const ProgramFacts& facts = program.facts();
  const Cost counted = cost(workload);
  result.verification.take(facts.arithmetic, plan.options.precision);
  result.counters.merge(std::map<std::string, double>{
      {"params",
       static_cast<double>(parameter_count(compiled)) / static_cast<double>(plan.options.copies)},
      {"batch", static_cast<double>(plan.options.batch)},
      {"flops", counted.flops},
      {"bytes", counted.bytes},
      {"products", static_cast<double>(product_count(workload))},
      {"launches", static_cast<double>(facts.launches)}});
  if (facts.threads) {
    result.counters["threads_used"] = *facts.threads;
  }
  if (target.ranks == 1) {  // ceilings are those of one process
    result.minimum_work = minimum_work_of(compiled, counted, program,
                                          as_chosen(target, result).options, *target.device);
    if (result.minimum_work->bytes_to_device > 0) {
      result.counters["bytes_to_device"] = result.minimum_work->bytes_to_device;
    }
  }
}

TrainingProgram Training::prepare(const TrainingPlan& plan, const Target& asked, Result& result) {
  // A row that is made again for more repetitions stays what it was chosen to be.
  const Target target = as_chosen(asked, result);
  require_memory_for_data(plan);
  const auto backend = backend_of(plan, target);
  Subject subject{
      .plan = plan, .workload = training_epoch(plan.task.model, plan.options), .data = {}};
  CompiledNetwork compiled = compile(
      *backend, subject.workload, target, result,
      [&](const Plan& planned) {
        require_memory_for(plan, target, subject.workload, planned);
        make_data(subject);
      },
      [&](Program& program, const Workload& own) { set_data(program, own, subject.data.rows); });
  TrainingProgram made{std::move(compiled)};
  const std::vector<double> losses =
      download(*made.program, made.workload, find(made.workload, "loss"));
  made.first_loss =
      std::accumulate(losses.begin(), losses.end(), 0.0) / static_cast<double>(losses.size());
  const std::optional<Subject> shares = by_shares(subject, target.ranks);
  const Subject& expected = shares ? *shares : subject;
  result.counters["verification_seconds"] = verify_or_note(result, [&] {
    if (result.first_steps && made.reproduces(*result.first_steps, target.options.precision)) {
      return;
    }
    result.verification = verified(made, subject, expected, as_chosen(target, result), result);
    result.first_steps = made.first_steps(
        result.verification.more.contains("batch") ? 1 : result.verification.compared);
  });
  count(plan, target, subject.workload, made.workload, *made.program, result);
  result.workload = hexadecimal(expected.fingerprint);
  result.label = optimizer_label(plan.options.optimizer);
  result.counters["logits"] =
      static_cast<double>(plan.options.rows * logits_of_a_sample(plan.task.model));
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
    if (!target.device->has_own_memory()) {
      bytes += static_cast<double>(planned.bytes() + planned.bytes_keeping_activations());
    }
  } else {
    const Workload verified =
        training_epoch(plan.task.model, of_one_step(plan.options, verification.batch));
    bytes += static_cast<double>(
        std::max(reference_bytes(forward_part(workload)), reference_bytes(verified)));
    if (!target.device->has_own_memory()) {
      const Backend& cpu = *target.device->backend;
      const auto keeping =
          cpu.plan(cpu.optimize(unshuffled(verified), target.options), target.options);
      bytes += static_cast<double>(planned.bytes() + keeping->bytes_keeping_activations());
    }
  }
  require_memory(plan, bytes);
}

Training::Data Training::data_of(const Task& task, std::int64_t rows) {
  const Data* const own = own_data(task);
  if (own == nullptr) {
    Data data{.rows = task.generate(rows)};
    data.fingerprint = fingerprint(data.rows);
    return data;
  }
  if (own->rows.rows == rows) {
    return *own;
  }
  Data data{.rows = first_rows(own->rows, rows)};
  data.fingerprint = fingerprint(data.rows);
  return data;
}

void Training::make_data(Subject& subject) {
  subject.data = data_of(subject.plan.task, subject.plan.options.rows);
  subject.fingerprint = fingerprint(fingerprint(subject.workload), subject.data.fingerprint);
}

Training::Subject Training::subject_of(const TrainingPlan& plan) {
  Subject subject{
      .plan = plan, .workload = training_epoch(plan.task.model, plan.options), .data = {}};
  make_data(subject);
  return subject;
}

std::optional<Training::Subject> Training::by_shares(const Subject& subject, int ranks) {
  if (ranks == 1 || !differs_by_shares(subject.workload)) {
    return std::nullopt;
  }
  Subject expected{.plan = subject.plan, .workload = {}, .data = {}};
  expected.plan.options.ranks = ranks;
  expected.plan.options.in_turn = true;
  expected.workload = training_epoch(expected.plan.task.model, expected.plan.options);
  expected.data.rows = rows_in_turn(subject.data.rows, expected.plan.options);
  expected.fingerprint = fingerprint(fingerprint(expected.workload), subject.data.fingerprint);
  expected.shares = ranks;
  return expected;
}

Verification Training::verified(Program& program, const Workload& workload,
                                const Subject& expected) {
  const Trajectory& trajectory = trajectory_of(expected);
  const Precision precision = expected.plan.options.precision;
  try {
    return verify(program, workload, trajectory, precision);
  } catch (const Mismatch& mismatch) {
    try {
      Reference reference(expected.workload);
      set_data(reference, expected.data.rows);
      return verify_between_kinks(program, workload, reference, std::ssize(trajectory.losses),
                                  precision, expected.shares);
    } catch (const Mismatch&) {
      Trajectory determined = trajectory;
      const Tolerance tolerance =
          tolerance_of_roundings(expected.workload, expected.data.rows, determined, precision,
                                 expected.shares, expected.plan.options.copies);
      try {
        return verify(program, workload, determined, tolerance);
      } catch (const Mismatch&) {
        if (tolerance.loss < most_of_loss || !mismatch.error || !mismatch.tolerance) {
          throw Mismatch(mismatch);  // what was found first is what is wrong
        }
        throw Mismatch(std::string(mismatch.what()) +
                           "; the network magnifies rounding: from starts that are 16 roundings "
                           "off the reference's own loss differs by 0.3 % or more, so that in "
                           "float32 nothing can be verified",
                       *mismatch.error, *mismatch.tolerance);
      }
    }
  }
}

/// Of the very program that will be timed its steps, or its first loss and then steps of a smaller
/// batch in a program of their own; and each operation, in one that keeps all tensors.
RowVerification Training::verified(TrainingProgram& made, const Subject& subject,
                                   const Subject& expected, const Target& target,
                                   const Result& result) {
  constexpr const char* then = "verifying its operations";
  const VerificationPlan how = verification_plan(subject.plan);
  if (how.batch == 0) {
    const Verification steps = verified(*made.program, made.workload, expected);
    result.tell(then);
    return record(steps, operations_verified(subject, target));
  }
  const Verification first = verify_first_loss(
      *made.program, made.workload, first_loss_of(expected), subject.plan.options.precision);
  // A share of one row may have nothing to normalize.
  const std::int64_t rows_of_ranks = std::int64_t{2} * target.ranks;
  TrainingPlan plan = subject.plan;
  plan.options =
      of_one_step(plan.options, std::min(plan.options.batch, std::max(how.batch, rows_of_ranks)));
  plan.flops = approximate_flops(plan);
  const Subject smaller = subject_of(plan);
  const auto backend = backend_of(plan, target);
  const Workload workload = backend->optimize(smaller.workload, target.options);
  const auto program = backend->compile(workload, target.options);
  set_data(*program, workload, smaller.data.rows);
  const auto shares = by_shares(smaller, target.ranks);
  Verification steps = verified(*program, workload, shares ? *shares : smaller);
  steps.loss_error = std::max(steps.loss_error, first.loss_error);
  result.tell(then);
  RowVerification both = record(steps, operations_verified(smaller, target));
  both.more["batch"] = plan.options.batch;
  return both;
}

OperationVerification Training::operations_verified(const Subject& subject, const Target& target) {
  if (target.ranks > 1) {
    // What a rank computes by itself; what the ranks sum shows in losses and parameters. The first
    // one's share of a batch has the most rows.
    TrainingPlan share = subject.plan;
    share.options = of_one_step(share.options, rows_of_rank(share.options.batch, 0, target.ranks));
    Target alone = target;
    alone.ranks = 1;
    alone.options.execution = Execution::eager;
    return operations_verified(subject_of(share), alone);
  }
  if (subject.plan.options.copies > 1) {  // each of which computes what the first does
    TrainingPlan one = subject.plan;
    one.options = of_one_copy(one.options);
    return operations_verified(subject_of(one), target);
  }
  const Workload workload = target.device->backend->optimize(
      with_visible_updates(unshuffled(subject.workload)), target.options);
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

double Training::first_loss_of(const Subject& subject) {
  const auto at = first_losses_.find(subject.fingerprint);
  if (at != first_losses_.end()) {
    return at->second;
  }
  announce("the first loss of " + row_name(work_of(subject.plan)),
           verification_plan(subject.plan).flops_of_loss);
  return first_losses_[subject.fingerprint] =
             reference_first_loss(subject.workload, subject.data.rows, subject.shares);
}

}  // namespace crossover::bench
