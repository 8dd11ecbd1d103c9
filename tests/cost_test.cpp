// SPDX-License-Identifier: Apache-2.0
#include "crossover/cost.h"

#include <gtest/gtest.h>

#include "crossover/catalogue.h"
#include "support.h"

namespace crossover::test {
namespace {

TEST(Cost, CountsAFusedLinearByHand) {
  OneOp one;
  const Id x = one.tensor("x", {10, 4});
  const Id w = one.tensor("w", {3, 4}, Role::parameter);
  const Id b = one.tensor("b", {3}, Role::parameter);
  one.operation(Linear{
      .x = x, .w = w, .bias = b, .y = one.tensor("y", {10, 3}), .activation = Activation::relu});
  const Cost c = cost(one.workload);
  EXPECT_EQ(c.flops, 2 * 10 * 4 * 3 + 30 + 30);
  EXPECT_EQ(c.bytes, 4 * (40 + 12 + 3 + 30));
  EXPECT_EQ(c.launches, 2);
}

TEST(Cost, CountsAGradientByHand) {
  OneOp one;
  LinearGrad op{.x = one.tensor("x", {10, 4}),
                .w = one.tensor("w", {3, 4}, Role::parameter),
                .dy = one.tensor("dy", {10, 3}),
                .dx = one.tensor("dx", {10, 4}),
                .dw = one.tensor("dw", {3, 4}, Role::gradient),
                .dbias = one.tensor("db", {3}, Role::gradient),
                .x_activation = Activation::relu};
  const Cost c = cost(one.operation(op).workload);
  EXPECT_EQ(c.flops, 2 * (2 * 10 * 4 * 3) + 30 + 40);
  EXPECT_EQ(c.launches, 4);
  EXPECT_EQ(c.bytes, 4 * (40 + 12 + 30 + 40 + 12 + 3));
}

TEST(Cost, CountsAProductByHand) {
  OneOp one;
  const Id a = one.tensor("a", {7, 10});
  const Id b = one.tensor("b", {3, 7});
  one.operation(Gemm{
      .a = a, .b = b, .c = one.tensor("c", {10, 3}), .transpose_a = true, .transpose_b = true});
  const Cost c = cost(one.workload);
  EXPECT_EQ(c.flops, 2 * 10 * 3 * 7);
  EXPECT_EQ(c.bytes, 4 * (70 + 21 + 30));
}

TEST(Cost, CountsBytesByType) {
  OneOp one;
  const Id x = one.tensor("x", {10, 4}, Role::activation, Type::bf16);
  const Id w = one.tensor("w", {3, 4}, Role::activation, Type::bf16);
  const Id b = one.tensor("b", {3}, Role::parameter);
  one.operation(Linear{.x = x, .w = w, .bias = b, .y = one.tensor("y", {10, 3})});
  EXPECT_EQ(cost(one.workload).bytes, 2 * (40 + 12) + 4 * (3 + 30));

  OneOp cast;
  const Id from = cast.tensor("x", {100});
  cast.operation(Cast{.x = from, .y = cast.tensor("y", {100}, Role::activation, Type::f16)});
  const Cost c = cost(cast.workload);
  EXPECT_EQ(c.flops, 0);
  EXPECT_EQ(c.bytes, 4 * 100 + 2 * 100);
  EXPECT_EQ(c.launches, 1);
}

TEST(Cost, OfAnEpochIsTheSumOverItsBatches) {
  const Model model = mlp("m", {4, 3, 2}, Activation::relu);
  const auto flops = [&](std::int64_t rows) {
    return cost(training_epoch(model, {.rows = rows, .batch = 5, .optimizer = SgdOptions{}})).flops;
  };
  EXPECT_DOUBLE_EQ(flops(13), 2 * flops(5) + flops(3));
}

TEST(Cost, FusingSavesBytesAndKeepsOperations) {
  const Task task = find_model("disc-8");
  const Workload plain =
      training_epoch(task.model, {.rows = 1000, .batch = 100, .optimizer = task.optimizer});
  const Cost before = cost(plain);
  const Cost after = cost(fuse(plain));
  EXPECT_DOUBLE_EQ(before.flops, after.flops);
  EXPECT_EQ(before.launches, after.launches);
  EXPECT_LT(after.bytes, before.bytes);
}

TEST(Cost, IsDominatedByThreeProductsForLargeNetworks) {
  const Task task = find_model("disc-12");
  const Workload workload =
      training_epoch(task.model, {.rows = 1000, .batch = 100, .optimizer = task.optimizer});
  const double products = 3 * 2 * 1000.0 * static_cast<double>(parameter_count(workload));
  EXPECT_NEAR(cost(workload).flops / products, 1, 0.01);
}

TEST(Cost, AFootprintCountsEachTensorOnce) {
  OneOp add;
  const Id a = add.tensor("a", {3, 4});
  const Id y = add.tensor("y", {3, 4});
  add.operation(Add{.a = a, .b = a, .y = y});
  EXPECT_EQ(footprint_bytes(add.workload, add.workload.steps[0]), 2 * 12 * 4);
}

}  // namespace
}  // namespace crossover::test
