// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <variant>
#include <vector>

#include "crossover/product.h"
#include "crossover/random.h"
#include "crossover/start.h"
#include "crossover/training.h"
#include "crossover/verify.h"
#include "differences.h"

namespace crossover {
namespace {

bool is_whole(Type type) { return type == Type::i32 || type == Type::u8; }

std::map<Id, std::size_t> last_writers(const std::vector<Op>& ops) {
  std::map<Id, std::size_t> last;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    for (const Id id : operands(ops[i]).writes) {
      last[id] = i;
    }
  }
  return last;
}

class Comparison {
 public:
  Comparison(Program& program, Reference& reference, Precision precision)
      : program_(program), reference_(reference), precision_(precision) {}

  void step(std::int64_t position, const std::string& when) {
    program_.enqueue(position, 1);
    program_.wait();
    const Workload& workload = reference_.workload();
    const int step = workload.order[static_cast<std::size_t>(position)].step;
    const std::vector<Op>& ops = workload.steps[static_cast<std::size_t>(step)].ops;
    const std::map<Id, std::size_t> last = last_writers(ops);
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const Operands used = operands(ops[i]);
      const std::set<Id> written(used.writes.begin(), used.writes.end());
      Values before;  // of what is updated in place
      for (const Id id : used.reads) {
        if (written.contains(id)) {
          before.insert_or_assign(id, value_of(id));
        }
      }
      reference_.run_operation(position, i);
      for (const Id id : written) {
        const Result result{.position = position, .index = i, .id = id};
        if (last.at(id) == i) {
          compare(result, before,
                  "tensor '" + workload[id].name + "' that " + name(ops[i]) + " wrote in " + when);
        } else if (workload[id].role == Role::gradient) {  // the program has it no more
          unseen_[id] += rounding_of_sums(result, before);
        }
      }
    }
    unseen_.clear();
    result_.operations = std::ssize(ops);
  }

  [[nodiscard]] const OperationVerification& result() const { return result_; }

 private:
  using Values = std::map<Id, std::vector<double>>;

  /// A tensor, and the operation that wrote it.
  struct Result {
    std::int64_t position = 0;
    std::size_t index = 0;  ///< of the operation in its step
    Id id = none;
  };

  std::vector<double> value_of(Id id) { return {reference_[id].begin(), reference_[id].end()}; }

  void restore(const Values& values) {
    for (const auto& [id, saved] : values) {
      std::copy(saved.begin(), saved.end(), reference_[id].begin());
    }
  }

  /// And goes on with what the program has.
  void compare(const Result& of, const Values& before, const std::string& what) {
    const Type type = reference_.workload()[of.id].type;
    const std::span<double> expected = reference_[of.id];
    const std::vector<double> got = download(program_, reference_.workload(), of.id);
    const double tolerance =
        is_whole(type) ? 0 : tolerance_of_operation(type, precision_, program_.facts().arithmetic);
    double scale = norm(expected);
    const auto old = before.find(of.id);
    if (old != before.end() && !is_whole(type)) {
      scale = distance(expected, old->second) + rounding_of_update(expected) / tolerance;
    }
    const double difference = distance(got, expected);
    result_.tolerance = std::max(result_.tolerance, tolerance);
    if (difference > tolerance * scale && type == Type::f32) {
      double rounding = old == before.end() ? rounding_of_sums(of, before) : 0;
      if (const auto unseen = unseen_.find(of.id); unseen != unseen_.end()) {
        rounding += unseen->second;
      }
      scale += rounding / tolerance;
    }
    take(difference == 0 ? 0 : difference / std::max(scale, 1e-30), tolerance, what, result_.error);
    std::copy(got.begin(), got.end(), expected.begin());
  }

  /// Where terms cancel, a sum that is stored in float32 is nothing but rounding, however right.
  /// What the rounding of each term does to it, the reference tells: it runs the operation again on
  /// operands that differ by up to a roundoff, and its result changes by u sqrt(n / 3) times the
  /// size of a term. Sums of n terms one after the other differ by u n / sqrt(6) of it, sqrt(n / 2)
  /// times as much (Higham, Accuracy and Stability of Numerical Algorithms, 2.6 and 4.2).
  double rounding_of_sums(const Result& of, const Values& before) {
    const Operands used = operands(operation(of));
    Values saved;
    for (const Id id : used.reads) {
      saved.insert_or_assign(id, value_of(id));
    }
    for (const Id id : used.writes) {
      saved.insert_or_assign(id, value_of(id));
    }
    restore(before);
    std::size_t most = 1;
    for (const Id id : used.reads) {
      const std::span<double> values = reference_[id];
      most = std::max(most, values.size());
      if (!is_whole(reference_.workload()[id].type)) {
        std::transform(values.begin(), values.end(), values.begin(),
                       [k = std::uint64_t{0}](double value) mutable {
                         return value *
                                (1 + unit_roundoff(Precision::f32) * (2 * unit_interval(k++) - 1));
                       });
      }
    }
    reference_.run_operation(of.position, of.index);
    const double change = distance(reference_[of.id], saved.at(of.id));
    restore(saved);
    constexpr double margin = 4;
    const auto terms = static_cast<double>(most) / static_cast<double>(saved.at(of.id).size());
    return margin * std::sqrt(std::max(terms, 1.0)) * change;
  }

  [[nodiscard]] const Op& operation(const Result& of) const {
    const Workload& workload = reference_.workload();
    const int step = workload.order[static_cast<std::size_t>(of.position)].step;
    return workload.steps[static_cast<std::size_t>(step)].ops[of.index];
  }

  Program& program_;
  Reference& reference_;
  const Precision precision_;
  std::map<Id, double> unseen_;  ///< rounding of gradients to which later layers of the step add
  OperationVerification result_;
};

}  // namespace

Workload with_visible_updates(Workload workload) {
  for (Step& step : workload.steps) {
    for (Op& op : step.ops) {
      std::visit(
          [](auto& update) {
            constexpr double least_rate = 0.01;
            if constexpr (requires { update.learning_rate; }) {
              update.learning_rate = std::max(update.learning_rate, least_rate);
            }
          },
          op);
    }
  }
  return workload;
}

double tolerance_of_operation(Type stored, Precision precision, const Arithmetic& arithmetic) {
  constexpr double of_sums = 1e-4;
  const Rounding rounding = rounding_of(precision, arithmetic);
  return of_sums + 2 * rounding.factor + (stored == Type::f32 ? 0 : rounding.result);
}

double rounding_of_update(std::span<const double> updated) {
  constexpr double roundings = 2;  // of a product that is added, and of the sum
  return roundings * unit_roundoff(Precision::f32) * norm(updated);
}

OperationVerification verify_operations(Program& program, Reference& reference, std::int64_t steps,
                                        Precision precision) {
  const Workload& workload = reference.workload();
  restart(reference);
  restart(program, workload);
  for (const Id id : tensors_of(workload, Role::parameter)) {  // as the program's type rounds them
    const std::vector<double> values = download(program, workload, id);
    std::copy(values.begin(), values.end(), reference[id].begin());
  }
  Comparison comparison(program, reference, precision);
  for (std::int64_t step = 0; step < steps; ++step) {
    comparison.step(step % std::ssize(workload.order), "step " + std::to_string(step + 1));
  }
  return comparison.result();
}

}  // namespace crossover
