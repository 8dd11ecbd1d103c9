// SPDX-License-Identifier: Apache-2.0
#include "families/training/verify.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string>

#include "crossover/reference.h"
#include "crossover/shared_training.h"
#include "crossover/start.h"

namespace crossover::bench {
namespace {

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

Verification steps_verified(Program& program, const Workload& workload, const Subject& expected,
                            References& references) {
  const Trajectory& trajectory = references.trajectory_of(expected);
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
                           "float32 nothing can be verified; a smaller --lr may help",
                       *mismatch.error, *mismatch.tolerance);
      }
    }
  }
}

OperationVerification operations_verified(const Subject& subject, const Target& target,
                                          References& references) {
  if (target.ranks > 1) {
    // What a rank computes by itself; what the ranks sum shows in losses and parameters. The first
    // one's share of a batch has the most rows.
    TrainingPlan share = subject.plan;
    share.options = of_one_step(share.options, rows_of_rank(share.options.batch, 0, target.ranks));
    Target alone = target;
    alone.ranks = 1;
    alone.options.execution = Execution::eager;
    return operations_verified(references.subject_of(share), alone, references);
  }
  if (subject.plan.options.copies > 1) {  // each of which computes what the first does
    TrainingPlan one = subject.plan;
    one.options = of_one_copy(one.options);
    return operations_verified(references.subject_of(one), target, references);
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

TensorVerification ForwardProgram::verified() const {
  return verify_outputs(*program, workload, expected, precision);
}

std::optional<Subject> by_shares(const Subject& subject, int ranks) {
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

RowVerification verified(TrainingProgram& made, const Subject& subject, const Subject& expected,
                         const Target& target, const Result& result, References& references) {
  constexpr const char* then = "verifying its operations";
  const VerificationPlan how = verification_plan(subject.plan);
  if (how.batch == 0) {
    const Verification steps = steps_verified(*made.program, made.workload, expected, references);
    result.tell(then);
    return record(steps, operations_verified(subject, target, references));
  }
  const Verification first =
      verify_first_loss(*made.program, made.workload, references.first_loss_of(expected),
                        subject.plan.options.precision);
  // A share of one row may have nothing to normalize.
  const std::int64_t rows_of_ranks = std::int64_t{2} * target.ranks;
  TrainingPlan plan = subject.plan;
  plan.options =
      of_one_step(plan.options, std::min(plan.options.batch, std::max(how.batch, rows_of_ranks)));
  plan.flops = approximate_flops(plan);
  const Subject smaller = references.subject_of(plan);
  const auto backend = backend_of(plan, target);
  const Workload workload = backend->optimize(smaller.workload, target.options);
  const auto program = backend->compile(workload, target.options);
  set_data(*program, workload, smaller.data.rows);
  const auto shares = by_shares(smaller, target.ranks);
  Verification steps = steps_verified(*program, workload, shares ? *shares : smaller, references);
  steps.loss_error = std::max(steps.loss_error, first.loss_error);
  result.tell(then);
  RowVerification both = record(steps, operations_verified(smaller, target, references));
  both.more["batch"] = plan.options.batch;
  return both;
}

}  // namespace crossover::bench
