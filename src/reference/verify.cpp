// SPDX-License-Identifier: Apache-2.0
#include "crossover/verify.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <span>
#include <sstream>

#include "crossover/alive.h"
#include "crossover/cost.h"
#include "crossover/random.h"
#include "crossover/reference.h"
#include "crossover/start.h"
#include "crossover/training.h"
#include "differences.h"

namespace crossover {

namespace {

std::string scientific(double value) {
  std::ostringstream text;
  text.precision(3);
  text << value;
  return text.str();
}

double relative(const Separation& of) {
  return std::sqrt(of.distance) / std::max(std::sqrt(of.norm), 1e-30);
}

constexpr std::int64_t fewest_steps = 2;  // only the second loss sees the first update

template <class Condition>
bool any_operation(const Workload& workload, const Condition& condition) {
  return std::any_of(workload.steps.begin(), workload.steps.end(), [&](const Step& step) {
    return std::any_of(step.ops.begin(), step.ops.end(), condition);
  });
}

/// An operation of that kind, or an update by that rule.
template <class Kind>
bool uses(const Workload& workload) {
  return any_operation(workload, [](const Op& op) {
    if constexpr (Operation<Kind>) {
      return std::holds_alternative<Kind>(op);
    } else {
      return rule_of<Kind>(op) != nullptr;
    }
  });
}

bool normalizes(const Workload& workload, NormKind kind) {
  return any_operation(workload, [kind](const Op& op) {
    const auto* norm = std::get_if<Norm>(&op);
    return norm != nullptr && norm->kind == kind;
  });
}

/// A small loss is the difference of large logits: below 0.1 the error is taken relative to 0.1.
double relative_loss(double got, double expected) {
  return std::abs(got - expected) / std::max(std::abs(expected), 0.1);
}

void compare_loss(double got, double expected, std::int64_t step, Verification& result) {
  const std::string what = "the loss of step " + std::to_string(step + 1);
  if (!std::isfinite(got)) {
    throw Mismatch(what +
                   " is not finite here, but in float64 it is: the training diverges, or leaves "
                   "the range of the precision; a smaller --lr may help");
  }
  take(relative_loss(got, expected), result.tolerance.loss, what, result.loss_error);
}

std::int64_t steps_of_epoch(const Workload& workload) { return std::ssize(workload.order); }

/// Runs steps [first, last) of a training that begins the order anew after its last step, in pieces
/// as long as they can be, because a graph of a whole epoch runs no less; and compares their
/// losses.
void run_and_compare_losses(Program& program, const Workload& workload,
                            const std::vector<double>& expected, std::int64_t first,
                            std::int64_t last, Verification& result) {
  const std::int64_t all = steps_of_epoch(workload);
  while (first < last) {
    const std::int64_t position = first % all;
    const std::int64_t count = std::min(last - first, all - position);
    program.enqueue(position, count);
    program.wait();
    const std::vector<double> losses = download(program, workload, find(workload, "loss"));
    for (std::int64_t i = 0; i < count; ++i) {
      compare_loss(losses[static_cast<std::size_t>(position + i)],
                   expected[static_cast<std::size_t>(first + i)], first + i, result);
    }
    first += count;
  }
}

/// Runs one more step of the reference, and returns its loss.
double run_step(Reference& reference, std::int64_t step) {
  const Workload& workload = reference.workload();
  const std::int64_t position = step % steps_of_epoch(workload);
  reference.run(position, 1);
  return reference[find(workload, "loss")][static_cast<std::size_t>(position)];
}

double rows_of_step(const Workload& workload, std::int64_t step) {
  const std::vector<Id> views =
      views_of(workload, workload.step_at(step % steps_of_epoch(workload)));
  return views.empty() ? 1 : static_cast<double>(workload[views.front()].shape.front());
}

/// Runs one more step of such a training, share by share, and returns its loss; calls behind(share)
/// after each.
template <class Behind>
double run_shares(Reference& reference, std::int64_t step, std::int64_t shares,
                  const Behind& behind) {
  double sum = 0;
  double rows = 0;
  for (std::int64_t share = step * shares; share < (step + 1) * shares; ++share) {
    const double own = rows_of_step(reference.workload(), share);
    sum += own * run_step(reference, share);
    rows += own;
    behind(share);
  }
  return sum / rows;
}

void nothing(std::int64_t /*share*/) {}

/// Each parameter by up to so much of itself.
void move_start(Reference& reference, double by, std::uint64_t seed) {
  std::uint64_t place = seed << 40U;
  for (const Id id : tensors_of(reference.workload(), Role::parameter)) {
    const std::span<double> values = reference[id];
    for_each_index(std::ssize(values), [&](std::int64_t i) {
      values[static_cast<std::size_t>(i)] *= 1 + by * (2 * unit_interval(place++) - 1);
    });
  }
}

/// Of each parameter tensor; `others(i, id)` are the values of the i-th one.
template <class Others>
std::vector<Separation> separations(const Trajectory& from, const Others& others) {
  std::vector<Separation> all;
  for (const auto& parameter : from.parameters) {
    all.push_back(separation(others(all.size(), parameter.first), parameter.second));
  }
  return all;
}

void require_finite_loss(double loss, std::int64_t step) {
  if (!std::isfinite(loss)) {
    throw std::runtime_error("the training diverges: the loss of step " + std::to_string(step + 1) +
                             " is not finite in the reference either; a smaller --lr may help");
  }
}

Verification verification_of(const Workload& workload, std::int64_t steps,
                             const Tolerance& tolerance) {
  return {.steps = steps,
          .steps_of = std::max(steps, steps_of_epoch(workload)),
          .tolerance = tolerance};
}
Verification verification_of(const Program& program, const Workload& workload, std::int64_t steps,
                             Precision precision) {
  return verification_of(workload, steps,
                         tolerance_for(workload, precision, program.facts().arithmetic));
}

bool compares_all_together(const Workload& workload) {
  return normalizes(workload, NormKind::batch) || normalizes(workload, NormKind::layer) ||
         uses<Attention>(workload);
}

/// What compares parameters after steps, each with the values that it is given.
class ParameterComparison {
 public:
  ParameterComparison(Program& program, const Workload& workload, Verification& result)
      : program_(program), workload_(workload), result_(result) {}

  void compare(Id id, std::span<const double> expected) {
    const Separation apart = separation(download(program_, workload_, id), expected);
    if (all_together_) {
      all_ = all_ + apart;
    } else {
      const std::vector<double>& own = result_.tolerance.tensors;
      take_error(apart, own.empty() ? result_.tolerance.parameters : own.at(compared_),
                 "tensor '" + workload_[id].name + "'");
    }
    ++compared_;
  }

  void finish() {
    if (all_together_) {
      take_error(all_, result_.tolerance.parameters, "the vector of all parameters");
    }
  }

 private:
  void take_error(const Separation& apart, double tolerance, const std::string& what) {
    take(relative(apart), tolerance, what + " after " + std::to_string(result_.steps) + " steps",
         result_.parameter_error);
  }

  Program& program_;
  const Workload& workload_;
  Verification& result_;
  const bool all_together_ = compares_all_together(workload_);
  std::size_t compared_ = 0;  ///< tensors
  Separation all_;
};

void compare_parameters(Program& program, const Workload& workload, const Trajectory& trajectory,
                        Verification& result) {
  ParameterComparison comparison(program, workload, result);
  for (const auto& [id, expected] : trajectory.parameters) {
    comparison.compare(id, expected);
  }
  comparison.finish();
}

/// Whether rounding may put an input of a ReLU on the other side of zero, or that of another
/// activation on the other side of its kink, in the step that the reference has just run: then its
/// gradient is another, and both are right. Zero itself is exact, and one of two gradients there as
/// well, where the program takes the other.
bool is_kink(Reference& reference, std::int64_t step, Precision precision,
             const Arithmetic& arithmetic) {
  constexpr double roundings = 8;  // of a sum of products, of the largest of them
  const double reach = roundings * unit_roundoff(precision, arithmetic);
  const Workload& workload = reference.workload();
  const std::vector<Op>& ops = workload.step_at(step % steps_of_epoch(workload)).ops;
  return std::any_of(ops.begin(), ops.end(), [&](const Op& op) {
    const auto* activate = std::get_if<Activate>(&op);
    const auto* map = std::get_if<Map>(&op);
    if (activate == nullptr && map == nullptr) {
      return false;
    }
    const auto kinks_of = [](const auto& function) { return function.kinks(); };
    const std::vector<double> kinks = activate != nullptr
                                          ? with_activation(activate->activation, kinks_of)
                                          : std::visit(kinks_of, map->function);
    if (kinks.empty()) {
      return false;
    }
    const std::span<double> inputs = reference[activate != nullptr ? activate->x : map->x];
    double largest = 0;
    for (const double input : inputs) {
      largest = std::max(largest, std::abs(input));
    }
    const auto is_near = [&](double input, double kink) {
      return input == 0 && kink == 0
                 ? activate != nullptr && activate->activation == Activation::relu &&
                       arithmetic.relu_passes_zero
                 : std::abs(input - kink) <= reach * largest;
    };
    return std::any_of(inputs.begin(), inputs.end(), [&](double input) {
      return std::any_of(kinks.begin(), kinks.end(),
                         [&](double kink) { return is_near(input, kink); });
    });
  });
}

std::set<Id> all_parameters(const Workload& workload) {
  const std::vector<Id> all = tensors_of(workload, Role::parameter);
  return {all.begin(), all.end()};
}

/// The parameters of the copy whose step it is.
std::set<Id> updated_in(const Reference& reference, std::int64_t step) {
  const Workload& workload = reference.workload();
  std::set<Id> updated;
  for (const Op& op : workload.step_at(step % steps_of_epoch(workload)).ops) {
    if (const auto* update = std::get_if<Update>(&op)) {
      updated.insert(update->parameters.begin(), update->parameters.end());
    }
  }
  return updated;
}

void compare_parameters_but(const std::set<Id>& left_out, Program& program,
                            const Workload& workload, Reference& reference, Verification& result) {
  ParameterComparison comparison(program, workload, result);
  for (const Id id : tensors_of(workload, Role::parameter)) {
    if (!left_out.contains(id)) {
      comparison.compare(id, reference[id]);
    }
  }
  comparison.finish();
}

/// Gives the program the reference's parameters and optimizer states.
void adopt(Program& program, const Workload& workload, Reference& reference) {
  for (const Role role : {Role::parameter, Role::state}) {
    for (const Id id : tensors_of(workload, role)) {
      upload(program, workload, id, reference[id]);
    }
  }
}

}  // namespace

double norm(std::span<const double> values) { return std::sqrt(separation(values, values).norm); }

double distance(std::span<const double> got, std::span<const double> expected) {
  return std::sqrt(separation(got, expected).distance);
}

double relative_error(std::span<const double> got, std::span<const double> expected) {
  return relative(separation(got, expected));
}

void take(double error, double tolerance, const std::string& what, double& largest) {
  if (!(error <= tolerance)) {
    throw Mismatch(what + " differs from the float64 reference by " + scientific(error) +
                       " (relative; tolerance " + scientific(tolerance) + ")",
                   error, tolerance);
  }
  largest = std::max(largest, error);
}

std::int64_t steps_to_verify(const Workload& workload, double flops) {
  constexpr std::int64_t most =
      256;  // rounding grows with the steps, and more of them prove no more
  const std::int64_t all = steps_of_epoch(workload);
  const double of_step = cost(workload).flops / static_cast<double>(all);
  const auto affordable =
      static_cast<std::int64_t>(std::min(flops / of_step, static_cast<double>(most)));
  return std::max(fewest_steps, std::min(all, affordable));
}

Trajectory reference_trajectory(const Workload& workload, const Dataset& dataset,
                                std::int64_t steps, std::int64_t shares, double start_off,
                                std::uint64_t seed) {
  Reference reference(workload);
  set_data(reference, dataset);
  restart(reference);
  if (start_off > 0) {
    move_start(reference, start_off, seed);
  }
  Trajectory trajectory;
  for (std::int64_t step = 0; step < steps; ++step) {
    trajectory.losses.push_back(run_shares(reference, step, shares, nothing));
    require_finite_loss(trajectory.losses.back(), step);
  }
  for (const Id id : tensors_of(workload, Role::parameter)) {
    const auto values = reference[id];
    trajectory.parameters.emplace_back(id, std::vector<double>(values.begin(), values.end()));
  }
  return trajectory;
}

Workload forward_part(const Workload& workload, std::int64_t shares) {
  Workload forward = workload;
  forward.order.resize(static_cast<std::size_t>(shares));
  for (const Run& run : forward.order) {
    std::vector<Op>& ops = forward.steps[static_cast<std::size_t>(run.step)].ops;
    const auto loss = std::find_if(ops.begin(), ops.end(),
                                   [](const Op& op) { return category(op) == OpCategory::loss; });
    if (loss == ops.end()) {
      throw std::invalid_argument("a step without a loss has no forward part");
    }
    ops.erase(loss + 1, ops.end());
  }
  for (const Id losses : tensors_of(workload, Role::loss)) {
    forward[losses].shape = {shares};
  }
  return forward;
}

double reference_first_loss(const Workload& workload, const Dataset& dataset, std::int64_t shares) {
  Reference reference(forward_part(workload, shares));
  set_data(reference, dataset);
  restart(reference);
  const double loss = run_shares(reference, 0, shares, nothing);
  require_finite_loss(loss, 0);
  return loss;
}

double unit_roundoff(Precision precision, const Arithmetic& arithmetic) {
  switch (precision) {
    case Precision::f32:
      return 0x1p-24;
    case Precision::tf32:
      return arithmetic.tf32 == Tf32Factors::truncated ? 0x1p-10 : 0x1p-11;
    case Precision::f16:
      return 0x1p-11;
    case Precision::bf16:
      return 0x1p-8;
  }
  throw std::logic_error("unknown precision");
}

Tolerance tolerance_for(const Workload& workload, Precision precision,
                        const Arithmetic& arithmetic) {
  const bool adamw = uses<AdamWOptions>(workload);
  const Precision stored = stored_precision(workload);
  if (stored != Precision::f32) {
    precision = stored;
  }
  constexpr double adamw_magnifies = 5;
  const double two_roundings =
      2 * unit_roundoff(precision, arithmetic) * (adamw ? adamw_magnifies : 1);
  Tolerance tolerance =
      precision == Precision::f32
          ? Tolerance{.loss = (adamw ? adamw_magnifies : 1) * 1e-5, .parameters = 1e-4}
          : Tolerance{.loss = two_roundings, .parameters = two_roundings};
  if (normalizes(workload, NormKind::batch)) {
    tolerance.loss = precision == Precision::f32 ? 1e-3 : 2e-2;
  }
  return tolerance;
}

Tolerance tolerance_of_roundings(const Workload& workload, const Dataset& dataset,
                                 Trajectory& trajectory, Precision precision, std::int64_t shares,
                                 std::int64_t copies) {
  constexpr double sixteen_roundings = 16 * 0x1p-24;
  constexpr std::uint64_t starts = 5;
  constexpr double further = 3;
  constexpr double most_of_update = 0.5;
  Tolerance tolerance = tolerance_for(workload, precision);
  if (precision != Precision::f32 || stored_precision(workload) != Precision::f32) {
    return tolerance;
  }
  const std::vector<Separation> update =
      separations(trajectory, [&](std::size_t /*i*/, Id id) { return StartValues(workload, id); });
  const Separation whole_update = std::accumulate(update.begin(), update.end(), Separation{});
  std::vector<double> moved(update.size());  // of each tensor the farthest, and of all
  double whole_moved = 0;
  for (std::uint64_t seed = 1; seed <= starts; ++seed) {
    const Trajectory other = reference_trajectory(workload, dataset, std::ssize(trajectory.losses),
                                                  shares, sixteen_roundings, seed);
    const std::vector<Separation> apart =
        separations(trajectory, [&](std::size_t i, Id /*id*/) -> const std::vector<double>& {
          return other.parameters[i].second;
        });
    for (std::size_t i = 0; i < moved.size(); ++i) {
      moved[i] = std::max(moved[i], apart[i].distance);
    }
    whole_moved =
        std::max(whole_moved, std::accumulate(apart.begin(), apart.end(), Separation{}).distance);
    for (std::size_t i = 0; i < other.losses.size(); ++i) {
      const double difference = further * relative_loss(other.losses[i], trajectory.losses[i]);
      const std::int64_t whole = static_cast<std::int64_t>(i) / copies * copies;
      if (difference > most_of_loss && whole >= std::max(fewest_steps, copies)) {
        trajectory = reference_trajectory(workload, dataset, whole, shares);
        return tolerance_of_roundings(workload, dataset, trajectory, precision, shares, copies);
      }
      tolerance.loss = std::max(tolerance.loss, std::min(difference, most_of_loss));
    }
  }
  const auto norm_of = [](const Separation& of) { return std::max(std::sqrt(of.norm), 1e-30); };
  const auto allowed = [&](double farthest, const Separation& changed) {
    return std::min(further * std::sqrt(farthest), most_of_update * std::sqrt(changed.distance)) /
           norm_of(changed);
  };
  if (compares_all_together(workload)) {
    tolerance.parameters = std::max(tolerance.parameters, allowed(whole_moved, whole_update));
    return tolerance;
  }
  const double usual = tolerance.parameters;
  for (std::size_t i = 0; i < moved.size(); ++i) {
    const bool has_gradient =
        std::sqrt(update[i].distance) > sixteen_roundings * std::sqrt(whole_update.distance);
    const double own = has_gradient ? allowed(moved[i], update[i])
                                    : usual * std::sqrt(whole_update.norm) / norm_of(update[i]);
    tolerance.tensors.push_back(std::max(usual, own));
  }
  for (const double own : tolerance.tensors) {  // a network may have none
    tolerance.parameters = std::max(tolerance.parameters, own);
  }
  return tolerance;
}

Verification verify(Program& program, const Workload& workload, const Trajectory& trajectory,
                    Precision precision) {
  return verify(program, workload, trajectory,
                tolerance_for(workload, precision, program.facts().arithmetic));
}

Verification verify(Program& program, const Workload& workload, const Trajectory& trajectory,
                    const Tolerance& tolerance) {
  const std::int64_t steps = std::ssize(trajectory.losses);
  Verification result = verification_of(workload, steps, tolerance);
  restart(program, workload);
  run_and_compare_losses(program, workload, trajectory.losses, 0, steps, result);
  compare_parameters(program, workload, trajectory, result);
  return result;
}

Verification verify_state(Program& program, const Workload& workload, const Trajectory& trajectory,
                          Precision precision) {
  const std::int64_t steps = std::ssize(trajectory.losses);
  Verification result = verification_of(program, workload, steps, precision);
  const std::vector<double> losses = download(program, workload, find(workload, "loss"));
  for (std::int64_t step = 0; step < steps; ++step) {
    const auto i = static_cast<std::size_t>(step);
    compare_loss(losses.at(i), trajectory.losses[i], step, result);
  }
  compare_parameters(program, workload, trajectory, result);
  return result;
}

Verification verify_first_loss(Program& program, const Workload& workload, double expected,
                               Precision precision) {
  Verification result = verification_of(program, workload, 1, precision);
  restart(program, workload);
  program.enqueue(0, program.facts().copies);  // as it will be timed
  program.wait();
  compare_loss(download(program, workload, find(workload, "loss")).front(), expected, 0, result);
  return result;
}

Verification verify_between_kinks(Program& program, const Workload& workload, Reference& reference,
                                  std::int64_t steps, Precision precision, std::int64_t shares) {
  Verification result = verification_of(program, workload, steps, precision);
  restart(reference);
  restart(program, workload);
  std::vector<double> losses;
  std::int64_t first = 0;
  const std::int64_t copies = program.facts().copies;  // a step of each is run at once
  std::set<Id> undetermined;                           // parameters, since `first`
  for (std::int64_t step = 0; step < steps; ++step) {
    bool kink = false;
    losses.push_back(run_shares(reference, step, shares, [&](std::int64_t share) {
      kink = is_kink(reference, share, precision, program.facts().arithmetic) || kink;
    }));
    if (kink) {
      ++result.undetermined;
      undetermined.merge(copies == 1 ? all_parameters(workload) : updated_in(reference, step));
    }
    const bool adopts = !undetermined.empty() && (step + 1) % copies == 0;
    if (!adopts && step + 1 < steps) {
      continue;
    }
    run_and_compare_losses(program, workload, losses, first, step + 1, result);
    compare_parameters_but(undetermined, program, workload, reference, result);
    if (adopts) {
      adopt(program, workload, reference);
      undetermined.clear();
    }
    first = step + 1;
  }
  if (result.undetermined == 0 || 2 * result.undetermined > steps) {
    throw Mismatch("too many steps are decided by rounding to verify the difference: " +
                   std::to_string(result.undetermined) + " of " + std::to_string(steps));
  }
  return result;
}

}  // namespace crossover
