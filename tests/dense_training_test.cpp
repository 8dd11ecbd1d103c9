// SPDX-License-Identifier: Apache-2.0
// Which Workloads are seen as training of a chain of Linear layers, and what is said of the others.
#include "crossover/dense_training.h"

#include <gtest/gtest.h>

#include <string>

#include "crossover/backend.h"
#include "crossover/catalogue.h"
#include "crossover/training.h"
#include "support.h"

namespace crossover::test {
namespace {

TrainingOptions options(const Optimizer& optimizer) {
  return {.rows = 12, .batch = 5, .optimizer = optimizer};
}

Model small() { return mlp("m", {4, 3, 2}, Activation::relu); }

/// "" where it is one.
std::string refusal(const Workload& workload) {
  try {
    static_cast<void>(dense_training(workload));
    return "";
  } catch (const Unsupported& reason) {
    return reason.what();
  }
}

TEST(DenseTraining, SeesLayersFromInputsToClasses) {
  const Workload workload = fuse(training_epoch(small(), options(SgdOptions{})));
  const std::vector<DenseStep> steps = dense_training(workload);
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_EQ(steps[0].batch, 5);
  EXPECT_EQ(steps[1].batch, 2);
  for (const DenseStep& step : steps) {
    ASSERT_EQ(step.layers.size(), 2U);
    EXPECT_EQ(workload[step.inputs()].role, Role::input);
    EXPECT_EQ(step.classes(), 2);
    EXPECT_EQ(step.layers[0].activation, Activation::relu);
    EXPECT_EQ(step.layers[0].in, 4);
    EXPECT_EQ(step.layers[0].out, 3);
    EXPECT_EQ(step.layers[0].dx, none);
    EXPECT_EQ(step.layers[1].x, step.layers[0].y);
    EXPECT_EQ(step.layers[1].x_activation, Activation::relu);
    EXPECT_EQ(step.layers[1].dx, step.layers[0].dy);
    EXPECT_EQ(step.layers[1].dy, step.loss.dlogits);
    EXPECT_TRUE(step.sgd);
    EXPECT_FALSE(step.updates_in_place());
  }
  EXPECT_EQ(steps[0].layers[1].w, steps[1].layers[1].w);
}

TEST(DenseTraining, SeesActivationsThatAreOperationsOfTheirOwn) {
  const Model silu = mlp("m", {4, 3, 2}, Activation::silu);
  const Workload workload = fuse(training_epoch(silu, options(SgdOptions{})));
  const DenseStep step = dense_training(workload)[0];
  ASSERT_EQ(step.layers.size(), 2U);
  EXPECT_EQ(step.layers[0].activation, Activation::silu);
  EXPECT_NE(step.layers[0].sum, step.layers[0].y);
  EXPECT_EQ(step.layers[1].x, step.layers[0].y);
  EXPECT_EQ(step.layers[1].x_activation, Activation::silu);
  EXPECT_NE(step.layers[1].product, step.layers[1].dx);
  EXPECT_EQ(step.layers[1].dx, step.layers[0].dy);
  EXPECT_EQ(step.layers[1].sum, none);
  EXPECT_EQ(step.layers[0].product, none);
}

TEST(DenseTraining, SeesWhoUpdates) {
  const Workload in_place = fuse_update(fuse(training_epoch(small(), options(SgdOptions{}))));
  EXPECT_TRUE(dense_training(in_place)[0].updates_in_place());
  const Workload adamw = fuse(training_epoch(small(), options(AdamWOptions{})));
  EXPECT_TRUE(dense_training(adamw)[0].adamw);
  const Workload momentum = fuse(training_epoch(small(), options(MomentumOptions{})));
  EXPECT_TRUE(dense_training(momentum)[0].momentum);
  EXPECT_FALSE(dense_training(momentum)[0].updates_in_place());
}

TEST(DenseTraining, SaysWhatStandsInTheWay) {
  TrainingOptions accumulated = options(SgdOptions{});
  accumulated.accumulate = 2;
  EXPECT_NE(refusal(fuse(training_epoch(small(), accumulated))).find("layers add to gradients"),
            std::string::npos);
  TrainingOptions narrow = options(SgdOptions{});
  narrow.precision = Precision::bf16;
  EXPECT_NE(refusal(fuse(training_epoch(small(), narrow))), "");
  const std::string residual = refusal(fuse(training_epoch(residual_model(), options({}))));
  EXPECT_NE(residual.find("Linear layers alone"), std::string::npos) << residual;
  const Workload not_fused = training_epoch(small(), options(SgdOptions{}));
  EXPECT_NE(refusal(not_fused).find("goes on with Activate"), std::string::npos);
  const Task images = find_model("alexnet-r");
  EXPECT_NE(refusal(fuse(training_epoch(images.model, {.rows = 2, .batch = 2})))
                .find("goes on with Convolution"),
            std::string::npos);
}

}  // namespace
}  // namespace crossover::test
