// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vector>

#include "launches_cases.h"

namespace crossover::test {
namespace {

TEST(Launches, OfTheCpuAreThoseOfTheCompiledProgram) {
  const auto backend = make_cpu_backend();
  for (const Workload& workload : launches_cases()) {
    for (const Workload& arranged : {workload, fuse(workload), fuse_update(fuse(workload))}) {
      EXPECT_EQ(backend->estimate(arranged, {}).launches,
                backend->compile(arranged, {})->facts().launches);
    }
  }
}

TEST(Launches, OfASmallNetworkByHand) {
  const Workload epoch = fuse(training_epoch(mlp("m", {4, 3, 2}, Activation::relu),
                                             {.rows = 13, .batch = 5, .optimizer = SgdOptions{}}));
  // Each of three steps: two products forward, the loss; backward dx and two dw, two sums for
  // biases, the derivative of ReLU; no update, which the products do.
  EXPECT_EQ(make_cpu_backend()->estimate(fuse_update(epoch), {}).launches, 3 * 9);
  const auto gpu = make_planned_gpu();
  const auto on_gpu = [&](const CompileOptions& options) {
    return gpu->estimate(epoch, options).launches;
  };
  // Sums and derivative are epilogues; one update.
  EXPECT_EQ(on_gpu({}), 3 * 7);
  EXPECT_EQ(on_gpu({.placement = Placement::pinned}), 3 * (7 + 2));
  // One more, which gathers rows and labels.
  EXPECT_EQ(on_gpu({.execution = Execution::graph}), 3 * (7 + 1));
  EXPECT_EQ(on_gpu({.execution = Execution::graph_epoch}), 3 * (7 + 1));
  EXPECT_EQ(on_gpu({.execution = Execution::persistent}), 1);
  EXPECT_EQ(on_gpu({.loss_every_step = true}), 3 * (7 + 1));
}

/// Of a step. A layer of batch normalization takes three each way, one that normalizes rows one and
/// two, attention one and two, an LSTM two for each time step and each way.
TEST(Launches, OfNetworksOnTheGpu) {
  const Model transformer = gpt({.vocabulary = 7, .width = 6, .layers = 2, .heads = 2, .time = 5});
  const Model of_patches =
      vit({.image = 6, .patch = 2, .width = 6, .layers = 1, .heads = 2, .classes = 3});
  const auto gpu = make_planned_gpu();
  for (const auto& [model, launches] : {std::pair{small_alexnet(), 30},
                                        {small_resnet(), 142},
                                        {small_language_model(), 47},
                                        {transformer, 69},
                                        {of_patches, 46}}) {
    const Workload step =
        fuse(training_epoch(model, {.rows = 4, .batch = 4, .optimizer = AdamWOptions{}}));
    EXPECT_EQ(gpu->estimate(step, {}).launches, launches) << model.name;
  }
  const Model wide = gpt({.width = 129});
  EXPECT_THROW(
      static_cast<void>(gpu->estimate(fuse(training_epoch(wide, {.rows = 4, .batch = 4})), {})),
      Unsupported);
}

}  // namespace
}  // namespace crossover::test
