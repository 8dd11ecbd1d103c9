// SPDX-License-Identifier: Apache-2.0
// A check that can't fail proves nothing: wrong programs must be found out.
#include "crossover/verify.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <set>
#include <vector>

#include "crossover/catalogue.h"
#include "crossover/start.h"
#include "support.h"

namespace crossover::test {
namespace {

Training heart(double learning_rate = 1e-3, double weight_decay = 1e-4) {
  const Task task = find_model("heart");
  return {
      fuse(training_epoch(task.model, {.rows = 95,
                                       .batch = task.batch,
                                       .optimizer = AdamWOptions{.learning_rate = learning_rate,
                                                                 .weight_decay = weight_decay}})),
      uniform_rows({29}, 95, 2)};
}

/// Runs `wrong` and compares it with the reference of the right training.
std::string verdict(const Training& wrong) {
  const Training right = heart();
  const Trajectory trajectory = reference_trajectory(right.workload, right.data, 10);
  const auto backend = make_cpu_backend();
  const auto program = started(*backend, wrong, 1);
  return message_of<Mismatch>([&] {
    const Verification result = verify(*program, wrong.workload, trajectory);
    EXPECT_EQ(result.steps, 10);
    EXPECT_LE(result.loss_error, result.tolerance.loss);
    EXPECT_GT(result.parameter_error, 0);
  });
}

TEST(Verify, AcceptsTheRightTraining) { EXPECT_EQ(verdict(heart()), ""); }

TEST(Verify, FindsAWrongLearningRate) {
  EXPECT_TRUE(verdict(heart(1.01e-3)).starts_with("the loss of step ")) << verdict(heart(1.01e-3));
}

TEST(Verify, FindsAMissingWeightDecay) { EXPECT_NE(verdict(heart(1e-3, 0.05)), ""); }

TEST(Verify, FindsAWrongLabel) {
  Training wrong = heart();
  wrong.data.labels[94] = 1 - wrong.data.labels[94];  // in the short last batch only
  EXPECT_TRUE(verdict(wrong).starts_with("the loss of step 10 differs")) << verdict(wrong);
}

/// A right program whose update of one tensor goes astray in one step.
class Astray : public Program {
 public:
  Astray(std::unique_ptr<Program> program, const Workload& workload, std::int64_t step,
         const ProgramFacts& facts = {}, std::string tensor = "layer 0 bias")
      : Program(facts),
        program_(std::move(program)),
        workload_(workload),
        step_(step),
        tensor_(std::move(tensor)) {}

  void upload(Id id, std::span<const std::byte> from) override { program_->upload(id, from); }
  void download(Id id, std::span<std::byte> to) override { program_->download(id, to); }
  void enqueue(std::int64_t first, std::int64_t count) override {
    EXPECT_EQ(first % facts().copies, 0);
    EXPECT_EQ(count % facts().copies, 0);
    if (first <= step_ && step_ < first + count) {
      program_->enqueue(first, step_ + 1 - first);
      const Id id = find(workload_, tensor_);
      std::vector<double> values = crossover::download(*this, workload_, id);
      values[0] += 0.01;
      crossover::upload(*this, workload_, id, values);
      count -= step_ + 1 - first;
      first = step_ + 1;
    }
    program_->enqueue(first, count);
  }
  void wait() override { program_->wait(); }
  Profile profile() override { return program_->profile(); }

 private:
  std::unique_ptr<Program> program_;
  const Workload& workload_;
  std::int64_t step_;
  std::string tensor_;
};

TEST(Verify, FindsAChangedParameterThatNoLossShows) {
  const Training right = heart();
  const Trajectory trajectory = reference_trajectory(right.workload, right.data, 10);
  constexpr std::int64_t last = 9;
  Astray program(started(*make_cpu_backend(), right, 1), right.workload, last);
  const std::string what =
      message_of<Mismatch>([&] { verify(program, right.workload, trajectory); });
  EXPECT_TRUE(what.starts_with("tensor 'layer 0 bias' after 10 steps")) << what;
}

/// A data set of one batch, trained on twice.
TEST(Verify, BeginsAnEpochOfOneStepAnew) {
  const Training one{training_epoch(mlp("m", {3, 8, 2}, Activation::relu), {.rows = 4, .batch = 4}),
                     uniform_rows({3}, 4, 2)};
  EXPECT_EQ(steps_to_verify(one.workload, 1e12), 2);
  const Trajectory trajectory = reference_trajectory(one.workload, one.data, 2);
  EXPECT_LT(trajectory.losses[1], trajectory.losses[0]);
  const auto backend = make_cpu_backend();
  const Verification result = verify(*started(*backend, one, 1), one.workload, trajectory);
  EXPECT_EQ(result.steps, 2);
  EXPECT_EQ(result.steps_of, 2);
  Trajectory wrong = trajectory;
  wrong.losses[1] *= 1.001;
  EXPECT_THROW(verify(*started(*backend, one, 1), one.workload, wrong), Mismatch);
}

TEST(VerifyFirstLoss, NeedsNoGradient) {
  const Training training = heart();
  const Workload forward = forward_part(training.workload);
  EXPECT_LT(reference_bytes(forward), reference_bytes(training.workload));
  const double loss = reference_first_loss(training.workload, training.data);
  EXPECT_DOUBLE_EQ(loss, reference_trajectory(training.workload, training.data, 1).losses[0]);
  const auto program = started(*make_cpu_backend(), training, 1);
  EXPECT_LE(verify_first_loss(*program, training.workload, loss).loss_error, 1e-5);
  EXPECT_THROW(verify_first_loss(*program, training.workload, 1.001 * loss), Mismatch);
}

/// Makes w x + b of the first neuron `sum`, up to rounding, in a row of three features; `copy` is
/// what the names of its tensors end in.
void set_first_sum(Dataset& data, std::int64_t row, double sum, const Workload& workload,
                   Reference& reference, const std::string& copy = "") {
  const auto w = reference[find(workload, "layer 0 weight" + copy)].first(3);
  const double bias = reference[find(workload, "layer 0 bias" + copy)][0];
  const double square = std::inner_product(w.begin(), w.end(), w.begin(), 0.0);
  for (std::size_t i = 0; i < 3; ++i) {
    data.inputs[static_cast<std::size_t>(row * 3) + i] =
        static_cast<float>((sum - bias) * w[i] / square);
  }
}

/// What verify_between_kinks() says of `program`.
std::string between_kinks(Astray& program, const Workload& workload, const Dataset& data,
                          Reference& reference) {
  set_data(program, workload, data);
  const std::int64_t steps = std::ssize(workload.order);
  try {
    const Verification result = verify_between_kinks(program, workload, reference, steps);
    EXPECT_EQ(result.steps, steps);
    return std::to_string(result.undetermined) + " undetermined";
  } catch (const Mismatch& mismatch) {
    return mismatch.what();
  }
}

/// Of three steps of each of the `copies`, of which those in `kinks` have an input of a ReLU within
/// rounding of zero, and where the update of `tensor` goes astray in the step `astray`.
std::string between_kinks(const std::set<std::int64_t>& kinks, std::int64_t astray,
                          std::int64_t copies = 1, const std::string& tensor = "layer 0 bias") {
  constexpr std::int64_t batch = 4;
  const Workload epoch = training_epoch(mlp("m", {3, 8, 2}, Activation::relu),
                                        {.rows = 3 * batch, .batch = batch, .copies = copies});
  Dataset data = uniform_rows({3}, 3 * batch, 2);
  Reference reference(epoch);
  set_data(reference, data);
  restart(reference);
  for (std::int64_t step = 0; step < std::ssize(epoch.order); ++step) {
    if (kinks.contains(step)) {
      const std::int64_t copy = step % copies + 1;
      set_first_sum(data, step / copies * batch, 0, epoch, reference,
                    copy == 1 ? "" : " of copy " + std::to_string(copy));
      set_data(reference, data);
    }
    reference.run(step, 1);
  }
  const Workload workload = fuse(epoch);
  Astray program(make_cpu_backend()->compile(workload, {.threads = 1}), workload, astray,
                 {.copies = copies}, tensor);
  return between_kinks(program, workload, data, reference);
}

TEST(VerifyBetweenKinks, LeavesOutNoUpdateButThatOfAKink) {
  EXPECT_EQ(between_kinks({1}, 1), "1 undetermined");
  EXPECT_TRUE(between_kinks({1}, 0).starts_with("the loss of step 2 differs"));
  EXPECT_TRUE(between_kinks({1}, 2).starts_with("tensor 'layer 0 bias' after 3 steps differs"));
}

TEST(VerifyBetweenKinks, RefusesWhereNoKinkExplainsOrTooManyDo) {
  constexpr std::int64_t nowhere = 99;
  EXPECT_TRUE(between_kinks({}, nowhere).ends_with("to verify the difference: 0 of 3"));
  EXPECT_TRUE(between_kinks({0, 1}, nowhere).ends_with("to verify the difference: 2 of 3"));
}

/// A step of each is run at once, so a kink leaves out the parameters of its copy alone.
TEST(VerifyBetweenKinks, ComparesTheOtherCopiesOfTheSameLaunches) {
  constexpr std::int64_t copies = 3;
  constexpr std::int64_t kink = copies + 1;  // of the second copy, in its second step
  const auto astray = [](std::int64_t step, const std::string& tensor) {
    return between_kinks({kink}, step, copies, tensor);
  };
  EXPECT_EQ(astray(kink, "layer 0 bias of copy 2"), "1 undetermined");
  EXPECT_TRUE(astray(kink, "layer 0 bias").starts_with("tensor 'layer 0 bias' after 9 steps"));
  EXPECT_TRUE(astray(kink + 1, "layer 0 bias of copy 3")
                  .starts_with("tensor 'layer 0 bias of copy 3' after 9 steps"));
  EXPECT_TRUE(astray(1, "layer 0 bias of copy 2").starts_with("the loss of step 5 differs"));
  EXPECT_TRUE(astray(2 * copies, "layer 0 bias of copy 2")
                  .starts_with("tensor 'layer 0 bias of copy 2' after 9 steps"));
}

/// The same where the second step gives a ReLU an input of exactly 0, which a ReLU before it made,
/// and its update goes astray.
std::string after_a_zero(const Arithmetic& arithmetic) {
  Model model{.name = "twice", .sample = {3}, .classes = 2, .layers = {}};
  Value value = model.add(LinearLayer{1}, {0});
  value = model.add(ActivationLayer{Activation::relu}, {value});
  value = model.add(ActivationLayer{Activation::relu}, {value});
  model.add(LinearLayer{2}, {value});
  constexpr std::int64_t batch = 4;
  const Workload workload = training_epoch(model, {.rows = 3 * batch, .batch = batch});
  Dataset data = uniform_rows({3}, 3 * batch, 2);
  Reference reference(workload);
  restart(reference);
  for (std::int64_t row = 0; row < 3 * batch; ++row) {
    set_first_sum(data, row, row == batch ? -1 : 1, workload, reference);
  }
  set_data(reference, data);
  Astray program(make_cpu_backend()->compile(workload, {.threads = 1}), workload, 1,
                 {.arithmetic = arithmetic});
  return between_kinks(program, workload, data, reference);
}

TEST(VerifyBetweenKinks, TakesZeroForAKinkWhereItsGradientPasses) {
  EXPECT_EQ(after_a_zero({.relu_passes_zero = true}), "1 undetermined");
  EXPECT_NE(after_a_zero({.relu_passes_zero = false}), "1 undetermined");
}

TEST(Verify, TakesNotANumberForAnError) {
  const Training right = heart();
  const Trajectory trajectory = reference_trajectory(right.workload, right.data, 10);
  Training wrong = right;
  wrong.data.inputs[0] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_NE(verdict(wrong), "");
  EXPECT_THROW(reference_trajectory(wrong.workload, wrong.data, 10), std::runtime_error);
}

TEST(Tolerance, FollowsThePrecision) {
  const auto of = [](const Optimizer& optimizer, Precision precision) {
    const Workload workload =
        training_epoch(mlp("m", {4, 2}, Activation::relu),
                       {.rows = 5, .batch = 5, .optimizer = optimizer, .precision = precision});
    return tolerance_for(workload, precision == Precision::tf32 ? Precision::tf32 : Precision::f32);
  };
  EXPECT_DOUBLE_EQ(of(SgdOptions{}, Precision::f32).loss, 1e-5);
  EXPECT_DOUBLE_EQ(of(AdamWOptions{}, Precision::f32).loss, 5e-5);
  EXPECT_DOUBLE_EQ(of(SgdOptions{}, Precision::tf32).loss, 0x1p-10);
  EXPECT_DOUBLE_EQ(of(SgdOptions{}, Precision::f16).parameters, 0x1p-10);
  const Workload workload =
      training_epoch(mlp("m", {4, 2}, Activation::relu), {.rows = 5, .batch = 5});
  const auto in_tf32 = [&](Tf32Factors factors) {
    return tolerance_for(workload, Precision::tf32, {.tf32 = factors}).loss;
  };
  EXPECT_DOUBLE_EQ(in_tf32(Tf32Factors::exact), 0x1p-10);
  EXPECT_DOUBLE_EQ(in_tf32(Tf32Factors::truncated), 0x1p-9);
  EXPECT_DOUBLE_EQ(of(SgdOptions{}, Precision::bf16).loss, 0x1p-7);
  EXPECT_DOUBLE_EQ(of(AdamWOptions{}, Precision::bf16).parameters, 5 * 0x1p-7);
}

/// Two steps of a deep normalized network on few rows, where a rounding grows from layer to layer.
Training deep(double learning_rate, std::int64_t layers = 32,
              const LayerKind& norm = BatchNormLayer{}) {
  Model model{.name = "deep", .sample = {3, 4, 4}, .classes = 4, .layers = {}};
  const auto add = [&model](const LayerKind& layer) {
    model.add(layer, {static_cast<Value>(std::ssize(model.layers))});
  };
  for (std::int64_t i = 0; i < layers; ++i) {
    add(ConvolutionLayer{.out_channels = 8, .window = {.size = 3, .padding = 1}});
    add(norm);
    add(ActivationLayer{Activation::relu});
  }
  add(FlattenLayer{});
  add(LinearLayer{4});
  return {
      fuse(training_epoch(
          model, {.rows = 4, .batch = 2, .optimizer = SgdOptions{.learning_rate = learning_rate}})),
      uniform_data(model, 4)};
}

/// Normalizations of which one is compared all together and the other tensor by tensor.
const std::vector<LayerKind>& norms() {
  static const std::vector<LayerKind> all{BatchNormLayer{}, GroupNormLayer{.groups = 4}};
  return all;
}

TEST(ToleranceOfRoundings, IsAsWideAsRoundingsOfTheStartMakeIt) {
  const auto of = [](const Training& training, Precision precision = Precision::f32) {
    Trajectory trajectory = reference_trajectory(training.workload, training.data, 2);
    return tolerance_of_roundings(training.workload, training.data, trajectory, precision);
  };
  EXPECT_EQ(of(heart()).parameters, 1e-4) << "nothing grows";
  for (const LayerKind& norm : norms()) {
    EXPECT_EQ(of(deep(0.05, 1, norm)).parameters, 1e-4) << "nothing grows";
    EXPECT_EQ(of(deep(0.05, 32, norm), Precision::tf32).parameters, 0x1p-10);
    const Tolerance wide = of(deep(0.05, 32, norm));
    EXPECT_GT(wide.parameters, 2e-4);
    EXPECT_LE(wide.loss, 1e-2);
  }
}

TEST(ToleranceOfRoundings, FindsATrainingWhoseUpdatesAreMissingOrTurned) {
  for (const LayerKind& norm : norms()) {
    const Training right = deep(0.05, 32, norm);
    Trajectory trajectory = reference_trajectory(right.workload, right.data, 10);
    const Tolerance tolerance = tolerance_of_roundings(right.workload, right.data, trajectory);
    EXPECT_GE(trajectory.losses.size(), 2);
    EXPECT_LT(trajectory.losses.size(), 10) << "rounding decides the last losses";
    const auto backend = make_cpu_backend();
    for (const double rate : {0.0, 0.02, 0.09, -0.05}) {
      const Training wrong = deep(rate, 32, norm);
      const auto program = started(*backend, wrong, 1);
      EXPECT_THROW(verify(*program, wrong.workload, trajectory, tolerance), Mismatch) << rate;
    }
    const auto program = started(*backend, right, 1);
    EXPECT_NO_THROW(verify(*program, right.workload, trajectory, tolerance));
  }
}

/// Its tensors have no tolerances, of which the largest would be that of all.
TEST(ToleranceOfRoundings, IsTheUsualOneOfANetworkWithoutParameters) {
  Model model{.name = "none", .sample = {3}, .classes = 3, .layers = {}};
  model.add(ActivationLayer{Activation::tanh}, {0});
  const Training training{training_epoch(model, {.rows = 4, .batch = 2}), uniform_data(model, 4)};
  Trajectory trajectory = reference_trajectory(training.workload, training.data, 2);
  const Tolerance tolerance = tolerance_of_roundings(training.workload, training.data, trajectory);
  EXPECT_TRUE(tolerance.tensors.empty());
  EXPECT_EQ(tolerance.parameters, 1e-4);
}

/// A single bias that is off shows in its tensor, however little of all parameters it is.
TEST(ToleranceOfRoundings, HidesNoTensorBehindTheOthers) {
  const Training right = heart();
  Trajectory trajectory = reference_trajectory(right.workload, right.data, 10);
  const Tolerance tolerance = tolerance_of_roundings(right.workload, right.data, trajectory);
  EXPECT_EQ(trajectory.losses.size(), 10) << "rounding decides nothing";
  Astray program(started(*make_cpu_backend(), right, 1), right.workload, 9);
  EXPECT_THROW(verify(program, right.workload, trajectory, tolerance), Mismatch);
}

/// The bias of keys adds the same to all scores of a query, so its gradient is nothing but
/// rounding. So is that of a bias in front of a normalization without the mean.
TEST(ToleranceOfRoundings, TakesATensorWithoutAGradientWithAllOthers) {
  const Training training = deep(0.05, 1, GroupNormLayer{.groups = 8});
  Trajectory trajectory = reference_trajectory(training.workload, training.data, 2);
  const Tolerance tolerance = tolerance_of_roundings(training.workload, training.data, trajectory);
  const auto of = [&](const char* name) {
    const Id id = find(training.workload, name);
    const auto at = std::find_if(trajectory.parameters.begin(), trajectory.parameters.end(),
                                 [&](const auto& one) { return one.first == id; });
    return tolerance.tensors.at(static_cast<std::size_t>(at - trajectory.parameters.begin()));
  };
  EXPECT_GT(of("layer 0 bias"), 1e-4);
  EXPECT_EQ(of("layer 0 weight"), 1e-4);
}

TEST(StepsToVerify, AreAllOrWhatIsAffordableButTwo) {
  const Workload workload = heart().workload;
  EXPECT_EQ(steps_to_verify(workload, 1e12), 10);
  EXPECT_EQ(steps_to_verify(workload, 0), 2);
}

TEST(VerifyResults, AllowsAResultWhatItsOwnTypeRounds) {
  EXPECT_DOUBLE_EQ(tolerance_of_result(Type::f32, Precision::f32), 1e-5);
  EXPECT_DOUBLE_EQ(tolerance_of_result(Type::f32, Precision::tf32), 1e-5 + 2 * 0x1p-11);
  EXPECT_DOUBLE_EQ(
      tolerance_of_result(Type::f32, Precision::tf32, {.tf32 = Tf32Factors::truncated}),
      1e-5 + 2 * 0x1p-10);
  EXPECT_DOUBLE_EQ(tolerance_of_result(Type::bf16, Precision::bf16), 1e-5 + 0x1p-7);
  EXPECT_DOUBLE_EQ(tolerance_of_result(Type::f16, Precision::f16), 1e-5 + 0x1p-10);
  for (const Precision precision : {Precision::bf16, Precision::f16}) {
    EXPECT_DOUBLE_EQ(tolerance_of_result(Type::f32, precision), 1e-5) << "a weight's gradient";
  }
}

TEST(VerifyAsTheyAre, ComparesAnOperationOnTheTensorsThatBothHold) {
  OneOp one;
  const Id x = one.tensor("x", {3});
  const Id y = one.tensor("y", {3});
  one.operation(Activate{.x = x, .y = y, .activation = Activation::relu});
  const auto program = make_cpu_backend()->compile(one.workload, {});
  Reference reference(one.workload);
  const std::vector<double> values{-1, 2, 3};
  upload(*program, one.workload, x, values);
  std::copy(values.begin(), values.end(), reference[x].begin());
  EXPECT_EQ(verify_as_they_are(*program, reference, Precision::f32).operations, 1);
  reference[x][2] = 3.01;
  EXPECT_THROW(verify_as_they_are(*program, reference, Precision::f32), Mismatch);
}

TEST(VerifyResults, FindsOneWrongEntryAndNamesItsTensor) {
  OneOp one;
  const Id x = one.tensor("x", {5, 7});
  const Id y = one.tensor("y", {5, 7});
  one.operation(Activate{.x = x, .y = y, .activation = Activation::sigmoid});
  const std::vector<double> values = numbers(5 * 7, 1);
  Reference reference(one.workload);
  std::copy(values.begin(), values.end(), reference[x].begin());
  reference.run(0, 1);
  const auto program = make_cpu_backend()->compile(one.workload, {.threads = 1});
  upload(*program, one.workload, x, values);
  program->enqueue(0, 1);
  program->wait();
  EXPECT_EQ(verify_results(*program, reference, Precision::f32).entries, 5 * 7);
  std::vector<double> wrong = download(*program, one.workload, y);
  wrong.back() += 1e-3;
  upload(*program, one.workload, y, wrong);
  EXPECT_TRUE(message_of<Mismatch>([&] {
                verify_results(*program, reference, Precision::f32);
              }).starts_with("tensor 'y' differs"));
}

}  // namespace
}  // namespace crossover::test
