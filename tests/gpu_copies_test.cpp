// SPDX-License-Identifier: Apache-2.0
// Copies of a network that train at once on a GPU.
#include <gtest/gtest.h>

#include "crossover/backend_over.h"
#include "crossover/catalogue.h"
#include "crossover/verify.h"
#include "gpu_variants.h"
#include "support.h"

namespace crossover::test {
namespace {

class GpuCopiesOfNetworks : public OnGpu {};

TEST_P(GpuCopiesOfNetworks, TrainEachAsTheReferenceDoes) {
  constexpr std::int64_t copies = 3;
  const auto backend = make_copies_backend(gpu(), copies);
  const Training training{
      backend->optimize(training_epoch(mlp("small", {4, 9, 3}, Activation::relu),
                                       {.rows = 13,
                                        .batch = 5,
                                        .optimizer = SgdOptions{.learning_rate = 0.1},
                                        .copies = copies})),
      uniform_rows({4}, 13, 3)};
  const std::int64_t steps = 2 * std::ssize(training.workload.order);
  const Trajectory expected = reference_trajectory(training.workload, training.data, steps);
  for (const GpuMode& mode : gpu_modes()) {
    const auto program = started(*backend, training, mode.options);
    EXPECT_NO_THROW(verify(*program, training.workload, expected)) << mode;
  }
  for (const Execution execution : {Execution::persistent, Execution::automatic}) {
    try {
      const auto program = started(*backend, training, {.execution = execution});
      EXPECT_NO_THROW(verify(*program, training.workload, expected)) << static_cast<int>(execution);
    } catch (const Unsupported&) {
      EXPECT_EQ(execution, Execution::persistent);  // not every GPU has clusters
    }
  }
}

/// As one Program where the library has their products, in any part of the order.
TEST_P(GpuCopiesOfNetworks, OfEveryDenseKindTrainAsOneProgram) {
  struct Many {
    Model model;
    std::int64_t copies;
    Optimizer optimizer;
    Precision precision;
  };
  const Model of_mse = mlp("mse", {4, 9, 3}, Activation::sigmoid, LossFunction::mse);
  const Optimizer sgd = SgdOptions{.learning_rate = 0.1};
  for (const Many& many : {Many{find_model("disc-3").model, 3, sgd, Precision::bf16},
                           {find_model("policy").model, 3, AdamWOptions{}, Precision::f32},
                           {of_mse, 3, AdamWOptions{}, Precision::bf16},
                           {find_model("disc-3").model, 64, AdamWOptions{}, Precision::f32},
                           {of_mse, 64, sgd, Precision::f32}}) {
    SCOPED_TRACE(many.model.name + " x " + std::to_string(many.copies));
    const auto backend = make_copies_backend(gpu(), many.copies);
    const Training training{
        backend->optimize(training_epoch(many.model, {.rows = 13,
                                                      .batch = 5,
                                                      .optimizer = many.optimizer,
                                                      .precision = many.precision,
                                                      .copies = many.copies})),
        uniform_data(many.model, 13)};
    const std::int64_t steps = std::ssize(training.workload.order) + many.copies + 2;
    const Trajectory expected = reference_trajectory(training.workload, training.data, steps);
    for (const Execution execution : {Execution::eager, Execution::graph, Execution::graph_epoch}) {
      const auto program =
          started(*backend, training, {.precision = many.precision, .execution = execution});
      EXPECT_EQ(program->facts().copies, many.copies);
      EXPECT_NO_THROW(verify(*program, training.workload, expected, many.precision))
          << static_cast<int>(execution);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Gpu, GpuCopiesOfNetworks, testing::ValuesIn(gpu_variants()), labelled);

}  // namespace
}  // namespace crossover::test
