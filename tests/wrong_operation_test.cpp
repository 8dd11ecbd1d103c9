// SPDX-License-Identifier: Apache-2.0
// A check that can't fail proves nothing: each operation of each network is broken in each way that
// comes to mind, one at a time, and verification must see it.
#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "crossover/catalogue.h"
#include "crossover/float16.h"
#include "crossover/networks.h"
#include "crossover/start.h"
#include "crossover/verify.h"
#include "support.h"

namespace crossover::test {
namespace {

// ---- networks of few numbers, each with every kind of operation of its large one

struct Thin {
  std::string name;
  Model model;
  Optimizer optimizer = SgdOptions{.learning_rate = 0.05};

  friend std::ostream& operator<<(std::ostream& out, const Thin& thin) { return out << thin.name; }
};

std::vector<Thin> thin_networks() {
  return {
      {"heart", mlp("heart", {7, 9, 5, 2}, Activation::relu), AdamWOptions{}},
      {"fcn", mlp("fcn", {20, 33, 17, 10}, Activation::sigmoid)},
      {"disc", mlp("disc", {2, 8, 6, 2}, Activation::relu)},
      {"regression", mlp("regression", {7, 9, 5, 3}, Activation::silu, LossFunction::mse)},
      {"binary", mlp("binary", {7, 9, 5, 3}, Activation::tanh, LossFunction::bce),
       MomentumOptions{.learning_rate = 0.05}},
      {"alexnet_r", alexnet(AlexNetR{.image = 16, .channels = {3, 4, 5}, .classes = 6})},
      {"alexnet_s",
       alexnet(AlexNetS{.image = 63, .channels = {4, 5, 6, 6, 5}, .hidden = 7, .classes = 5})},
      {"resnet_56", resnet(ResNetR{.blocks = 2, .image = 8, .channels = {3, 4, 5}, .classes = 6}),
       SgdOptions{.learning_rate = 1e-4}},
      {"resnet_50",
       resnet(
           {.image = 32, .stem = 3, .blocks = {2, 1, 1, 1}, .middle = {2, 3, 2, 3}, .classes = 7}),
       SgdOptions{.learning_rate = 1e-5}},
      {"lstm", language_model({.vocabulary = 11, .hidden = 6, .layers = 2, .time = 5}),
       SgdOptions{.learning_rate = 0.5}},
      {"gpt", gpt({.vocabulary = 11, .width = 6, .layers = 1, .heads = 2, .time = 5}),
       AdamWOptions{}},
      {"vit", vit({.image = 6, .patch = 3, .width = 6, .layers = 1, .heads = 2, .classes = 3}),
       AdamWOptions{}},
      {"upsampled", upsampled_model()},
      {"line", line_model()},
      {"padded", padded_model()},
      {"strided", strided_model()},
  };
}

/// Its means and gradients of shifts are nothing but rounding at the start: what is normalized is
/// normalized again, with no activation between.
Thin cancelling() {
  return {
      "mobilenet",
      mobilenet(
          {.image = 9, .stem = 4, .stages = {{1, 4, 1, 1}, {2, 5, 2, 2}}, .head = 8, .classes = 3}),
      MomentumOptions{.learning_rate = 1e-4}};
}

/// The same of biases that two layers share: both gradients are rounding, and so is their sum.
Thin cancelling_and_shared() {
  Model model{.name = "twins", .sample = {2, 6, 6}, .classes = 3, .layers = {}};
  std::vector<Value> both;
  LayerNumber first = no_layer;
  for (std::int64_t channel = 0; channel < 2; ++channel) {
    Value value = model.add(SliceLayer{.from = channel, .to = channel + 1}, {0});
    value = model.add(ConvolutionLayer{4, {.size = 3}}, {value});
    model.layers.back().shared = first;
    first = value - 1;
    both.push_back(model.add(FlattenLayer{}, {model.add(BatchNormLayer{}, {value})}));
  }
  model.add(LinearLayer{3}, {model.add(ConcatenateLayer{}, both)});
  return {"twins", std::move(model)};
}

constexpr std::int64_t batch = 4;
constexpr std::int64_t steps = 2;

Dataset rows_of(const Model& model) { return uniform_data(model, batch); }

Training training_of(const Thin& thin, Precision precision) {
  return {training_epoch(
              thin.model,
              {.rows = batch, .batch = batch, .optimizer = thin.optimizer, .precision = precision}),
          rows_of(thin.model)};
}

// ---- ways to break one operation

struct Broken {
  std::string how;
  std::optional<Op> instead;  ///< of the operation
  bool skipped = false;
  std::function<void(Reference&)> before, after;  ///< the operation
};

/// The reference as a Program whose operation at `index` is broken.
class BrokenProgram : public Program {
 public:
  BrokenProgram(Workload workload, std::size_t index, Broken broken)
      : index_(index), broken_(std::move(broken)), reference_(altered(std::move(workload))) {}

  void upload(Id id, std::span<const std::byte> from) override {
    const std::span<double> to = reference_[id];
    with_type(id, [&](auto zero) {
      const auto* stored = reinterpret_cast<const decltype(zero)*>(from.data());
      std::transform(stored, stored + to.size(), to.begin(),
                     [](auto value) { return wide(value); });
    });
  }
  void download(Id id, std::span<std::byte> to) override {
    const std::span<double> from = reference_[id];
    with_type(id, [&](auto zero) {
      using T = decltype(zero);
      std::transform(from.begin(), from.end(), reinterpret_cast<T*>(to.data()), [](double value) {
        if constexpr (std::is_integral_v<T>) {
          return static_cast<T>(value);
        } else {
          return narrowed<T>(static_cast<float>(value));
        }
      });
    });
  }
  void enqueue(std::int64_t first, std::int64_t count) override {
    for (std::int64_t position = first; position < first + count; ++position) {
      for (std::size_t i = 0; i < reference_.workload().steps.front().ops.size(); ++i) {
        if (i != index_) {
          reference_.run_operation(position, i);
        } else if (!broken_.skipped) {
          run_broken(position);
        }
      }
    }
  }
  void wait() override {}
  Profile profile() override { return {}; }

 private:
  [[nodiscard]] Workload altered(Workload workload) const {
    if (broken_.instead) {
      workload.steps.front().ops[index_] = *broken_.instead;
    }
    return workload;
  }

  void run_broken(std::int64_t position) {
    if (broken_.before) {
      broken_.before(reference_);
    }
    reference_.run_operation(position, index_);
    if (broken_.after) {
      broken_.after(reference_);
    }
  }

  template <class T>
  static double wide(T value) {
    if constexpr (std::is_integral_v<T>) {
      return value;
    } else {
      return widened(value);
    }
  }

  template <class Work>
  void with_type(Id id, const Work& work) {
    switch (reference_.workload()[id].type) {
      case Type::i32:
        return work(std::int32_t{});
      case Type::u8:
        return work(std::uint8_t{});
      default:
        return with_float(reference_.workload()[id].type, work);
    }
  }

  std::size_t index_;
  Broken broken_;
  Reference reference_;
};

class Breaker {
 public:
  explicit Breaker(const Workload& workload) : workload_(workload) {}

  /// All that fit.
  std::vector<Broken> ways(const Op& op) {
    all_ = {{.how = "is skipped", .skipped = true}};
    break_results(op);
    std::visit([&](const auto& one) { break_members(one); }, op);
    std::visit([&](const auto& one) { break_more(one); }, op);
    return std::move(all_);
  }

 private:
  template <class Operation, class Change>
  void instead(const std::string& how, Operation op, const Change& change) {
    change(op);
    all_.push_back({.how = how, .instead = op});
  }

  /// Each tensor that it writes: as it was, one percent too large, with one number of another sign.
  void break_results(const Op& op) {
    for (const Id id : operands(op).writes) {
      if (workload_[id].type == Type::i32 || workload_[id].type == Type::u8) {
        continue;
      }
      const std::string what = " '" + workload_[id].name + "'";
      const auto old = std::make_shared<std::vector<double>>();
      const auto keep = [id, old](Reference& reference) { *old = copy(reference[id]); };
      all_.push_back({.how = "leaves as it was" + what,
                      .before = keep,
                      .after = [id, old](Reference& reference) {
                        std::copy(old->begin(), old->end(), reference[id].begin());
                      }});
      all_.push_back({.how = "makes or changes by 2 % too much" + what,
                      .before = keep,
                      .after = [id, old, in_place = updates(op, id)](Reference& reference) {
                        for (std::size_t i = 0; i < old->size(); ++i) {
                          const double from = in_place ? (*old)[i] : 0;
                          reference[id][i] += 0.02 * (reference[id][i] - from);
                        }
                      }});
      all_.push_back({.how = "gives one number of another sign in" + what,
                      .before = keep,
                      .after = [id, old, in_place = updates(op, id)](Reference& reference) {
                        const auto change = [&](std::size_t i) {
                          return reference[id][i] - (in_place ? (*old)[i] : 0);
                        };
                        std::size_t largest = 0;
                        for (std::size_t i = 0; i < old->size(); ++i) {
                          largest = std::abs(change(i)) > std::abs(change(largest)) ? i : largest;
                        }
                        reference[id][largest] -= 2 * change(largest);
                      }});
    }
  }

  static bool updates(const Op& op, Id id) {
    const Operands used = operands(op);
    return std::find(used.reads.begin(), used.reads.end(), id) != used.reads.end();
  }

  /// Whatever a member of that name means, it means it in all operations.
  template <class Operation>
  void break_members(const Operation& op) {
    if constexpr (requires { op.activation; }) {
      if (op.activation != Activation::identity) {
        instead("lacks its activation", op, [](auto& o) { o.activation = Activation::identity; });
      }
    }
    if constexpr (requires { op.x_activation; }) {
      if (op.x_activation != Activation::identity) {
        instead("lacks the derivative", op, [](auto& o) { o.x_activation = Activation::identity; });
      }
    }
    if constexpr (requires {
                    op.bias;
                    op.activation;
                  }) {
      if (op.bias != none) {
        instead("lacks its bias", op, [](auto& o) { o.bias = none; });
      }
    }
    if constexpr (std::is_same_v<Operation, ConvolutionGrad>) {
      if (op.bias != none) {
        instead("lacks its bias", op, [](auto& o) { o.bias = none; });
      }
    }
    if constexpr (requires { op.kind == PoolKind::sum; }) {
      const bool is_sum = op.kind == PoolKind::sum;
      if (is_sum || op.kind == PoolKind::average) {
        instead("sums or averages", op,
                [=](auto& o) { o.kind = is_sum ? PoolKind::average : PoolKind::sum; });
      }
    }
    if constexpr (requires { op.addend; }) {
      if (op.addend != none) {
        instead("lacks its addend", op, [](auto& o) { o.addend = none; });
      }
    }
    if constexpr (requires { op.dy_more; }) {
      if (op.dy_more != none) {
        instead("lacks a gradient", op, [](auto& o) { o.dy_more = none; });
      }
    }
    if constexpr (requires { op.accumulate; }) {
      instead("accumulates or not", op, [](auto& o) { o.accumulate = !o.accumulate; });
    }
    if constexpr (requires { op.seed; }) {
      instead("has another seed", op, [](auto& o) { ++o.seed; });
      instead("drops more", op, [](auto& o) { o.probability += 0.1; });
    }
    if constexpr (requires {
                    op.epsilon;
                    op.mean;
                  }) {
      instead("has another epsilon", op, [](auto& o) { o.epsilon = 0.1; });
    }
    if constexpr (requires { op.causal; }) {
      instead("sees other places", op, [](auto& o) { o.causal = !o.causal; });
    }
    if constexpr (std::is_same_v<Operation, Update>) {
      instead("has another learning rate", op, [](Update& o) {
        std::visit([](auto& rule) { rule.learning_rate *= 1.02; }, o.rule);
      });
      for (std::size_t i = 0; i < op.parameters.size(); ++i) {
        instead("skips parameter " + std::to_string(i), op, [i](auto& o) { forget(o, i); });
      }
    }
    if constexpr (requires { op.window; }) {
      break_window(op);
    }
  }

  static void forget(Update& update, std::size_t i) {
    const auto at = static_cast<std::ptrdiff_t>(i);
    update.parameters.erase(update.parameters.begin() + at);
    update.gradients.erase(update.gradients.begin() + at);
    for (std::vector<Id>& states : update.states) {
      states.erase(states.begin() + at);
    }
    if (!update.weight_decay.empty()) {
      update.weight_decay.erase(update.weight_decay.begin() + at);
    }
  }

  template <class Operation>
  void break_window(const Operation& op) {
    for (const std::int64_t by : {-1, 1}) {
      const auto stride = [by](Window& w) {
        w.stride = {w.stride.down + by, w.stride.across + by};
      };
      const auto padding = [by](Window& w) {
        w.padding = {w.padding.down + by, w.padding.across + by};
      };
      window_instead("has another stride", op, stride);
      window_instead("has another padding", op, padding);
      window_instead("has windows in other places", op, [&](Window& w) {  // of the same shape
        stride(w);
        padding(w);
      });
      window_instead("is padded otherwise across", op, [by](Window& w) { w.padding.across += by; });
    }
    if (!op.window.is_square()) {
      window_instead("is turned", op, [](Window& w) {
        for (Pair* pair : {&w.size, &w.stride, &w.padding, &w.dilation}) {
          std::swap(pair->down, pair->across);
        }
      });
    }
  }

  /// Where the tensors still fit, and have more than one window: else it would be the same.
  template <class Operation, class Change>
  void window_instead(const std::string& how, Operation op, const Change& change) {
    change(op.window);
    Workload workload = workload_;
    workload.steps.front().ops = {op};
    try {
      check(workload);
    } catch (const std::invalid_argument&) {
      return;
    }
    if (workload_[windows_of(op)].shape.back() > 1) {
      all_.push_back({.how = how, .instead = op});
    }
  }
  template <class Operation>
  static Id windows_of(const Operation& op) {
    if constexpr (requires { op.dy; }) {
      return op.dy;
    } else {
      return op.y;
    }
  }

  // ---- what no member says

  template <class Operation>
  void break_more(const Operation& /*op*/) {}

  void break_more(const NormGrad& op) {
    if (op.kind != NormKind::batch) {
      return;
    }
    all_.push_back({.how = "lacks the terms of the means", .after = [op](Reference& r) {
                      const Shape& shape = r.workload()[op.x].shape;
                      const std::int64_t image = shape[2] * shape[3];
                      const auto count = static_cast<double>(shape[0] * image);
                      for (std::size_t i = 0; i < r[op.dx].size(); ++i) {
                        const auto c = static_cast<std::size_t>(static_cast<std::int64_t>(i) /
                                                                image % shape[1]);
                        const double inverse = r[op.inverse_deviation][c];
                        const double x = (r[op.x][i] - r[op.mean][c]) * inverse;
                        r[op.dx][i] += r[op.scale][c] * inverse *
                                       (r[op.dshift][c] + x * r[op.dscale][c]) / count;
                      }
                    }});
  }

  static std::size_t gates_of(const Cell& cell) {
    return static_cast<std::size_t>(facts_of(cell).gates);
  }

  /// Rows of `part` and of the next one exchanged, of so many parts.
  static void exchange(std::span<double> rows, std::size_t part, std::size_t parts) {
    const std::size_t size = rows.size() / parts;
    std::swap_ranges(rows.begin() + static_cast<std::ptrdiff_t>(part * size),
                     rows.begin() + static_cast<std::ptrdiff_t>((part + 1) * size),
                     rows.begin() + static_cast<std::ptrdiff_t>((part + 1) * size));
  }

  void break_more(const Recurrent& op) {
    for (std::size_t part = 0; part + 1 < gates_of(op.cell); ++part) {
      const auto exchanged = [op, part](Reference& r) {
        for (const Id id : {op.w_ih, op.w_hh, op.b_ih, op.b_hh}) {
          exchange(r[id], part, gates_of(op.cell));
        }
      };
      all_.push_back(
          {.how = "has its gates in another order", .before = exchanged, .after = exchanged});
    }
  }
  void break_more(const RecurrentGrad& op) {
    const std::size_t gates = gates_of(op.cell);
    for (std::size_t part = 0; part + 1 < gates; ++part) {
      all_.push_back({.how = "has its gates in another order",
                      .after = [=](Reference& r) { exchange(r[op.dw_ih], part, gates); }});
    }
    const auto exchanged = [=](Reference& r) { exchange(r[op.w_hh], 1, gates); };
    all_.push_back(
        {.how = "goes back through other gates", .before = exchanged, .after = exchanged});
  }

  void break_more(const SoftmaxCrossEntropy& op) {
    instead("scales its gradient", op, [](auto& o) { o.scale *= 1.02; });
    const auto reversed = [op](Reference& r) {
      std::reverse(r[op.labels].begin(), r[op.labels].end());
    };
    if (workload_[op.labels].role == Role::data) {
      all_.push_back({.how = "takes other labels", .before = reversed, .after = reversed});
    }
  }

  void break_more(const ElementwiseLoss& op) {
    instead("scales its gradient", op, [](auto& o) { o.scale *= 1.02; });
    instead("is another loss", op, [](auto& o) {
      o.function = o.function == LossFunction::mse ? LossFunction::bce : LossFunction::mse;
    });
  }

  void break_more(const Add& op) {
    instead("adds the same twice", op, [](auto& o) { o.b = o.a; });
  }

  const Workload& workload_;
  std::vector<Broken> all_;
};

/// What verification says of the training with one of its operations broken; empty: nothing.
std::string verdict(const Training& training, Precision precision, std::size_t index,
                    Broken broken) {
  BrokenProgram program(training.workload, index, std::move(broken));
  set_data(program, training.workload, training.data);
  Reference reference(training.workload);
  set_data(reference, training.data);
  return message_of<Mismatch>([&] { verify_operations(program, reference, steps, precision); });
}

class WrongOperation : public testing::TestWithParam<std::tuple<Thin, Precision>> {};

TEST_P(WrongOperation, IsSeen) {
  const auto& [thin, precision] = GetParam();
  if (thinned() && precision != Precision::f32) {
    GTEST_SKIP()
        << "runs no code that f32 does not: without sanitizers, or with CROSSOVER_TEST_ALL";
  }
  omp_set_num_threads(1);  // of tensors as small as these
  Training training = training_of(thin, precision);
  training.workload =
      make_cpu_backend()->optimize(with_visible_updates(std::move(training.workload)));
  const std::vector<Op>& ops = training.workload.steps.front().ops;
  EXPECT_EQ(verdict(training, precision, 0, {}), "") << "nothing is broken";
  std::set<std::string> seen;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    for (const Broken& broken : Breaker(training.workload).ways(ops[i])) {
      if (thinned() && !seen.insert(std::string(name(ops[i]))).second) {
        continue;
      }
      EXPECT_NE(verdict(training, precision, i, broken), "")
          << i << ": " << name(ops[i]) << " " << broken.how;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Thin, WrongOperation,
                         testing::Combine(testing::ValuesIn(thin_networks()),
                                          testing::Values(Precision::f32, Precision::bf16)),
                         labelled);

/// Where rounding alone is left of a sum, a thousandth of one of its terms is far too much.
TEST(WrongSum, IsSeenWhereItsTermsCancel) {
  Training training = training_of(cancelling(), Precision::f32);
  training.workload = make_cpu_backend()->optimize(std::move(training.workload));
  Reference right(training.workload);
  set_data(right, training.data);
  restart(right);
  right.run(0, 1);
  const auto largest = [](std::span<const double> values) {
    return std::abs(*std::max_element(values.begin(), values.end(), [](double one, double other) {
      return std::abs(one) < std::abs(other);
    }));
  };
  const std::vector<Op>& ops = training.workload.steps.front().ops;
  int cancelled = 0;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const auto* op = std::get_if<NormGrad>(&ops[i]);
    if (op == nullptr || op->kind != NormKind::batch ||
        largest(right[op->dshift]) > 1e-9 * largest(right[op->dy])) {
      continue;
    }
    ++cancelled;
    const double off = 1e-3 * largest(right[op->dy]);
    EXPECT_NE(verdict(training, Precision::f32, i,
                      {.how = "is off",
                       .after = [op, off](Reference& run) { run[op->dshift][0] += off; }}),
              "")
        << i;
  }
  EXPECT_EQ(cancelled, 3);
}

// ---- right operations pass

/// Sums that begin with the weights that they update round each time to a unit of these.
TEST(RightUpdate, MayAddItsTermsToTheWeightsOneByOne) {
  constexpr std::int64_t rows = 1000;
  Model model{.name = "one layer", .sample = {2}, .classes = 2, .layers = {}};
  model.add(LinearLayer{2}, {0});
  const Training training = {
      fuse_update(training_epoch(
          model, {.rows = rows, .batch = rows, .optimizer = SgdOptions{.learning_rate = 1e-3}})),
      uniform_data(model, rows)};
  const std::vector<Op>& ops = training.workload.steps.front().ops;
  const auto at = std::find_if(ops.begin(), ops.end(),
                               [](const Op& op) { return std::holds_alternative<LinearGrad>(op); });
  const auto grad = std::get<LinearGrad>(*at);
  ASSERT_TRUE(grad.accumulate);
  const auto added = [&](std::size_t from) {
    const auto weights = std::make_shared<std::vector<double>>();
    return Broken{.before = [=](Reference& run) { *weights = copy(run[grad.dw]); },
                  .after =
                      [=](Reference& run) {
                        const std::span<const double> x = run.read(grad.x, 0);
                        for (std::size_t i = 0; i < weights->size(); ++i) {
                          auto sum = static_cast<float>((*weights)[i]);
                          for (std::size_t row = from; row < rows; ++row) {
                            sum = std::fma(static_cast<float>(run[grad.dy][2 * row + i / 2]),
                                           static_cast<float>(x[2 * row + i % 2]), sum);
                          }
                          run[grad.dw][i] = sum;
                        }
                      }};
  };
  const auto index = static_cast<std::size_t>(at - ops.begin());
  EXPECT_EQ(verdict(training, Precision::f32, index, added(0)), "");
  EXPECT_NE(verdict(training, Precision::f32, index, added(rows / 100)), "");
}

class RightOperation : public testing::TestWithParam<std::tuple<Thin, Precision>> {};

TEST_P(RightOperation, IsVerifiedOnTheCpu) {
  const auto& [thin, precision] = GetParam();
  const auto backend = make_cpu_backend();
  if (const std::string reason = backend->missing_for(precision); !reason.empty()) {
    GTEST_SKIP() << reason;
  }
  const Training plain = training_of(thin, precision);
  const Workload workload = backend->optimize(with_visible_updates(plain.workload));
  for (const int threads : {1, 3}) {
    const auto program = backend->compile(
        workload, {.threads = threads, .precision = precision, .keep_activations = true});
    set_data(*program, workload, plain.data);
    Reference reference(workload);
    set_data(reference, plain.data);
    try {
      const OperationVerification found = verify_operations(*program, reference, steps, precision);
      EXPECT_EQ(found.operations, std::ssize(workload.steps.front().ops));
      EXPECT_GT(found.error, 0);
      testing::Test::RecordProperty("error", std::to_string(found.error));
    } catch (const Mismatch& mismatch) {
      ADD_FAILURE() << mismatch.what();
    }
  }
}

std::vector<Thin> thin_and_cancelling() {
  std::vector<Thin> all = thin_networks();
  all.push_back(cancelling());
  all.push_back(cancelling_and_shared());
  return all;
}

INSTANTIATE_TEST_SUITE_P(Thin, RightOperation,
                         testing::Combine(testing::ValuesIn(thin_and_cancelling()),
                                          testing::Values(Precision::f32, Precision::bf16)),
                         labelled);

/// Operations are verified as they were fused: so fusing must change nothing.
class Fusing : public testing::TestWithParam<Thin> {};

std::vector<double> changes(const std::vector<double>& from, const std::vector<double>& to) {
  std::vector<double> all(to.size());
  std::transform(to.begin(), to.end(), from.begin(), all.begin(), std::minus<>());
  return all;
}

TEST_P(Fusing, ChangesNoUpdate) {
  const Training plain = training_of(GetParam(), Precision::f32);
  const Trajectory expected = reference_trajectory(plain.workload, plain.data, steps);
  Reference start(plain.workload);
  restart(start);
  for (const Workload& fused : {fuse(plain.workload), fuse_update(fuse(plain.workload))}) {
    const Trajectory found = reference_trajectory(fused, plain.data, steps);
    for (std::size_t i = 0; i < expected.parameters.size(); ++i) {
      const auto& [id, values] = expected.parameters[i];
      const std::vector<double> old = copy(start[id]);
      EXPECT_LT(relative_error(changes(old, found.parameters[i].second), changes(old, values)),
                1e-7)
          << plain.workload[id].name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Thin, Fusing, testing::ValuesIn(thin_networks()), labelled);

// ---- updates are more than their rounding

/// Where they are not, a wrong update would pass for rounding.
class Update : public testing::TestWithParam<std::string> {};

TEST_P(Update, IsFarMoreThanItsRounding) {
  if (thinned()) {
    GTEST_SKIP() << "runs no code that thin networks do not: without sanitizers";
  }
  const Task task = find_model(GetParam());
  constexpr std::int64_t few = 2;
  const Workload workload = make_cpu_backend()->optimize(with_visible_updates(
      training_epoch(task.model, {.rows = few, .batch = few, .optimizer = task.optimizer})));
  if (parameter_count(workload) > 20'000'000 && !test_all()) {
    GTEST_SKIP() << "large: with CROSSOVER_TEST_ALL";
  }
  Reference reference(workload);
  set_data(reference, task.generate(few));
  restart(reference);
  std::vector<std::vector<double>> start;
  for (const Id id : tensors_of(workload, Role::parameter)) {
    start.push_back(copy(reference[id]));
  }
  reference.run(0, 1);
  auto before = start.begin();
  for (const Id id : tensors_of(workload, Role::parameter)) {
    const std::vector<double> after = copy(reference[id]);
    const std::vector<double> update = changes(*before++, after);
    const double size =
        std::sqrt(std::inner_product(update.begin(), update.end(), update.begin(), 0.0));
    EXPECT_LT(rounding_of_update(after), 0.1 * size)
        << workload[id].name << ": " << rounding_of_update(after) / size;
  }
}

// Without mobilenet-v2: a depthwise convolution that is normalized again takes out the scale in
// front of it, so that gradients of scales are zero at the start but for the bound of ReLU6.
INSTANTIATE_TEST_SUITE_P(Catalogue, Update,
                         testing::Values("disc-2", "disc-8", "disc-12", "heart", "fcn-r", "fcn-s",
                                         "alexnet-r", "alexnet-s", "resnet-56", "resnet-50", "lstm",
                                         "gpt-16", "gpt-64", "lenet-5", "policy", "surrogate",
                                         "matrix-4"),
                         labelled);

}  // namespace
}  // namespace crossover::test
