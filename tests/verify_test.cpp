// SPDX-License-Identifier: Apache-2.0
// A check that can't fail proves nothing: wrong programs must be found out.
#include "crossover/verify.h"

#include <gtest/gtest.h>

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
  program->enqueue(0, 10);
  try {
    const Verification result = verify(*program, wrong.workload, trajectory);
    EXPECT_EQ(result.steps, 10);
    EXPECT_LE(result.loss_error, result.tolerance.loss);
    EXPECT_GT(result.parameter_error, 0);
    return "";
  } catch (const Mismatch& mismatch) {
    return mismatch.what();
  }
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

TEST(Verify, FindsAChangedParameterThatNoLossShows) {
  const Training right = heart();
  const Trajectory trajectory = reference_trajectory(right.workload, right.data, 10);
  const auto backend = make_cpu_backend();
  const auto program = started(*backend, right, 1);
  program->enqueue(0, 10);
  const Id bias = find(right.workload, "layer 4 bias");
  std::vector<double> values = download(*program, right.workload, bias);
  values[1] += 0.01;
  upload(*program, right.workload, bias, values);
  EXPECT_THROW(verify(*program, right.workload, trajectory), Mismatch);
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
  EXPECT_DOUBLE_EQ(of(SgdOptions{}, Precision::bf16).loss, 0x1p-7);
  EXPECT_DOUBLE_EQ(of(AdamWOptions{}, Precision::bf16).parameters, 5 * 0x1p-7);
}

TEST(StepsToVerify, AreAllOrWhatIsAffordableButTwo) {
  const Workload workload = heart().workload;
  EXPECT_EQ(steps_to_verify(workload, 1e12), 10);
  EXPECT_EQ(steps_to_verify(workload, 0), 2);
}

TEST(VerifyResults, AllowsAResultWhatItsOwnTypeRounds) {
  EXPECT_DOUBLE_EQ(tolerance_of_result(Type::f32, Precision::f32), 1e-5);
  EXPECT_DOUBLE_EQ(tolerance_of_result(Type::f32, Precision::tf32), 1e-5 + 2 * 0x1p-10);
  EXPECT_DOUBLE_EQ(tolerance_of_result(Type::bf16, Precision::bf16), 1e-5 + 0x1p-7);
  EXPECT_DOUBLE_EQ(tolerance_of_result(Type::f16, Precision::f16), 1e-5 + 0x1p-10);
  for (const Precision precision : {Precision::bf16, Precision::f16}) {
    EXPECT_DOUBLE_EQ(tolerance_of_result(Type::f32, precision), 1e-5) << "a weight's gradient";
  }
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
  try {
    verify_results(*program, reference, Precision::f32);
    FAIL() << "accepted";
  } catch (const Mismatch& mismatch) {
    EXPECT_TRUE(std::string(mismatch.what()).starts_with("tensor 'y' differs"));
  }
}

}  // namespace
}  // namespace crossover::test
