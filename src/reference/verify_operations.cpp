// SPDX-License-Identifier: Apache-2.0
// Operations by themselves against the reference, and products too large for it.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <utility>
#include <variant>
#include <vector>

#include "crossover/alive.h"
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
    const std::vector<Op>& ops = workload.step_at(position).ops;
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
      scale = distance(expected, old->second) +
              rounding_of_update(expected, terms_of_entry(of)) / tolerance;
    }
    double difference = distance(got, expected);
    result_.tolerance = std::max(result_.tolerance, tolerance);
    if (difference > tolerance * scale && program_.facts().arithmetic.relu_passes_zero) {
      take_what_passes_at_zero(of, got, expected);
      difference = distance(got, expected);
    }
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

  /// A mask of relu's may say 1 where its input is exactly 0, and the result is 0 as behind a
  /// negative input: a gradient that passes there is right, too. Whose input that is, rounding
  /// decides: of the terms in f32, and of their sum where it is rounded to what the result is
  /// stored in before the bias is added, as cuBLASLt 13.1 does in bf16 on an H200.
  void take_what_passes_at_zero(const Result& of, const std::vector<double>& got,
                                std::span<double> expected) {
    const auto* grad = std::get_if<LinearGrad>(&operation(of));
    const Linear* linear = grad != nullptr && grad->dx == of.id ? maker_of(*grad, of) : nullptr;
    if (linear == nullptr) {
      return;
    }
    const Workload& workload = reference_.workload();
    const auto width = static_cast<std::size_t>(workload[linear->w].shape[1]);
    const auto outputs = static_cast<std::size_t>(workload[linear->w].shape[0]);
    const std::span<const double> x = reference_.read(linear->x, of.position);
    const std::span<const double> w = reference_[linear->w];
    const double unit =
        unit_roundoff(is_16_bit(workload[linear->y].type) ? precision_ : Precision::f32);
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (got[i] == expected[i] || reference_[linear->y][i] != 0) {
        continue;
      }
      const std::span<const double> row = x.subspan(i / outputs * width, width);
      const std::span<const double> column = w.subspan(i % outputs * width, width);
      const double bias = linear->bias != none ? reference_[linear->bias][i % outputs] : 0;
      double input = bias;
      double sizes = 0;
      for (std::size_t k = 0; k < width; ++k) {
        input += row[k] * column[k];
        sizes += std::abs(row[k] * column[k]);
      }
      const double rounding =
          unit * std::abs(bias) + unit_roundoff(Precision::f32) * (sizes + std::abs(bias));
      if (std::abs(input) <= rounding) {
        expected[i] = got[i];
        result_.passes_at_zero = true;
      }
    }
  }

  /// The Linear with a ReLU that wrote what the gradient is for; null where there is none.
  [[nodiscard]] const Linear* maker_of(const LinearGrad& grad, const Result& of) const {
    for (std::size_t i = of.index; i-- > 0;) {
      const Op& op = operation({.position = of.position, .index = i});
      const std::vector<Id> written = operands(op).writes;
      if (std::find(written.begin(), written.end(), grad.x) != written.end()) {
        const auto* linear = std::get_if<Linear>(&op);
        return linear != nullptr && linear->activation == Activation::relu ? linear : nullptr;
      }
    }
    return nullptr;
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
    for (const Id id : used.reads) {
      const std::span<double> values = reference_[id];
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
    return margin * std::sqrt(terms_of_entry(of)) * change;
  }

  /// Of how many terms an entry of the result is the sum, nearly: at least 1.
  double terms_of_entry(const Result& of) {
    const Op& op = operation(of);
    std::size_t most = 1;
    if (!std::holds_alternative<Update>(op)) {  // which reads many tensors, each for itself
      for (const Id id : operands(op).reads) {
        most = std::max(most, reference_[id].size());
      }
    }
    const auto entries = static_cast<double>(reference_[of.id].size());
    return std::max(1.0, static_cast<double>(most) / entries);
  }

  [[nodiscard]] const Op& operation(const Result& of) const {
    return reference_.workload().step_at(of.position).ops[of.index];
  }

  Program& program_;
  Reference& reference_;
  const Precision precision_;
  std::map<Id, double> unseen_;  ///< rounding of gradients to which later layers of the step add
  OperationVerification result_;
};

using Entry = std::pair<std::int64_t, std::int64_t>;  // row, column

constexpr std::int64_t entries_of_an_edge = 128;
constexpr std::int64_t entries_from_anywhere = 256;

std::int64_t drawn(std::uint64_t k, std::int64_t below) {
  return static_cast<std::int64_t>(uniform(Stream::inputs, k) * static_cast<double>(below));
}

/// Evenly spread over the extent, the first and the last among them.
std::vector<std::int64_t> spread(std::int64_t extent) {
  const std::int64_t count = std::min(extent, entries_of_an_edge);
  std::vector<std::int64_t> at;
  for (std::int64_t i = 0; i < count; ++i) {
    at.push_back(count == 1 ? 0 : i * (extent - 1) / (count - 1));
  }
  return at;
}

std::set<Entry> sample(std::int64_t m, std::int64_t n) {
  std::set<Entry> entries{{0, 0}, {0, n - 1}, {m - 1, 0}, {m - 1, n - 1}};
  for (const std::int64_t column : spread(n)) {
    entries.emplace(m - 1, column);
  }
  for (const std::int64_t row : spread(m)) {
    entries.emplace(row, n - 1);
  }
  for (std::uint64_t i = 0; i < entries_from_anywhere; ++i) {
    entries.emplace(drawn(2 * i, m), drawn(2 * i + 1, n));
  }
  return entries;
}

class Verifier {
 public:
  Verifier(const ProductSize& size, std::span<const double> a, std::span<const double> b,
           std::span<const double> c, const Rounding& rounding)
      : size_(size), a_(a), b_(b), c_(c) {
    const double sums = static_cast<double>(size.k) * rounding.sum;
    tolerance_ = sums / (1 - sums) + 2 * rounding.factor + rounding.factor * rounding.factor +
                 rounding.result;
  }

  [[nodiscard]] double tolerance() const { return tolerance_; }

  /// Returns the error, relative to the sum of magnitudes.
  [[nodiscard]] double check(std::int64_t row, std::int64_t column) const {
    // a's element (row, p) and b's element (p, column).
    const std::int64_t a_step = size_.transpose_a ? size_.m : 1;
    const std::int64_t b_step = size_.transpose_b ? 1 : size_.n;
    const double* x = a_.data() + (size_.transpose_a ? row : row * size_.k);
    const double* y = b_.data() + (size_.transpose_b ? column * size_.k : column);
    double sum = 0;
    double magnitudes = 0;
    for (std::int64_t p = 0; p < size_.k; ++p) {
      const double product = x[p * a_step] * y[p * b_step];
      sum += product;
      magnitudes += std::abs(product);
    }
    const double got = c_[static_cast<std::size_t>(row * size_.n + column)];
    const double error = std::abs(got - sum);
    const double bound = tolerance_ * magnitudes;
    if (!(error <= bound)) {
      std::ostringstream text;
      text << "entry (" << row << ", " << column << ") of the product is " << got << ", and " << sum
           << " in float64: they differ by " << error << ", and rounding explains " << bound;
      throw magnitudes > 0 ? Mismatch(text.str(), error / magnitudes, tolerance_)
                           : Mismatch(text.str());
    }
    return magnitudes > 0 ? error / magnitudes : 0;
  }

 private:
  const ProductSize size_;
  std::span<const double> a_, b_, c_;
  double tolerance_ = 0;
};

}  // namespace

Workload with_visible_updates(Workload workload) {
  for (Step& step : workload.steps) {
    for (Op& op : step.ops) {
      if (auto* update = std::get_if<Update>(&op)) {
        static constexpr double least_rate = 0.01;
        std::visit(
            [](auto& rule) { rule.learning_rate = std::max(rule.learning_rate, least_rate); },
            update->rule);
      }
    }
  }
  return workload;
}

double tolerance_of_operation(Type stored, Precision precision, const Arithmetic& arithmetic) {
  constexpr double of_sums = 1e-4;
  const Rounding rounding = rounding_of(precision, arithmetic);
  return of_sums + 2 * rounding.factor + (stored == Type::f32 ? 0 : rounding.result);
}

double rounding_of_update(std::span<const double> updated, double terms) {
  // Of a product that is added, and of the sum; or, where the sum begins with what is stored, of
  // each sum so far: n of these come to the root of n times one, as they point either way.
  const double roundings = std::max(2.0, std::sqrt(terms));
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

OperationVerification verify_as_they_are(Program& program, Reference& reference,
                                         Precision precision) {
  Comparison comparison(program, reference, precision);
  comparison.step(0, "its step");
  return comparison.result();
}

std::string to_string(Tf32Factors factors) {
  return factors == Tf32Factors::exact     ? "exact"
         : factors == Tf32Factors::rounded ? "rounded"
                                           : "truncated";
}

Rounding rounding_of(Precision precision, const Arithmetic& arithmetic) {
  constexpr double half_ulp_f32 = 0x1p-24;
  // Matrix units need not round sums and results to nearest: whole units in the last place.
  constexpr double ulp_f32 = 0x1p-23;
  // Factors of 16 bits are stored as such: nothing is left to round.
  constexpr double ulp_bf16 = 0x1p-7;
  constexpr double ulp_f16 = 0x1p-10;
  switch (precision) {
    case Precision::f32:
      return {.sum = half_ulp_f32};
    case Precision::tf32:
      return {.factor = unit_roundoff(precision, arithmetic), .sum = ulp_f32};
    case Precision::bf16:
      return {.sum = ulp_f32, .result = ulp_bf16};
    case Precision::f16:
      return {.sum = ulp_f32, .result = ulp_f16};
  }
  throw std::logic_error("unknown precision");
}

ProductVerification verify_product(const ProductSize& size, std::span<const double> a,
                                   std::span<const double> b, std::span<const double> c,
                                   const Rounding& rounding, double multiplications) {
  const auto require = [](std::span<const double> matrix, std::int64_t rows, std::int64_t columns) {
    if (static_cast<std::int64_t>(matrix.size()) != elements({rows, columns})) {
      throw std::invalid_argument("a matrix of " + std::to_string(matrix.size()) +
                                  " elements is not " + to_string(Shape{rows, columns}));
    }
  };
  require(a, size.m, size.k);
  require(b, size.k, size.n);
  require(c, size.m, size.n);
  const Verifier verifier(size, a, b, c, rounding);
  ProductVerification result{.entries_of = size.m * size.n, .tolerance = verifier.tolerance()};
  const auto check = [&](std::int64_t row, std::int64_t column) {
    result.error = std::max(result.error, verifier.check(row, column));
    ++result.entries;
    alive();
  };
  const double all =
      static_cast<double>(size.m) * static_cast<double>(size.n) * static_cast<double>(size.k);
  if (all <= multiplications) {
    for (std::int64_t row = 0; row < size.m; ++row) {
      for (std::int64_t column = 0; column < size.n; ++column) {
        check(row, column);
      }
    }
  } else {
    for (const auto& [row, column] : sample(size.m, size.n)) {
      check(row, column);
    }
  }
  return result;
}

}  // namespace crossover
