// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "../src/cuda/plan/narrow.h"
#include "crossover/catalogue.h"
#include "crossover/float16.h"
#include "crossover/start.h"
#include "crossover/verify.h"
#include "gpu_variants.h"
#include "support.h"

namespace crossover::test {

// ---- Weights that are updated in the product of their gradient, beside others that the optimizer
// updates.

namespace {

class GpuUpdate : public OnGpu {};

/// The middle layer's weights in their product, or all of them; the last batch is of one row.
Training partly_updated(std::int64_t least_weights) {
  return {fuse_update(fuse(training_epoch(
                          mlp("m", {5, 12, 10, 3}, Activation::relu),
                          {.rows = 13, .batch = 4, .optimizer = SgdOptions{.learning_rate = 0.1}})),
                      least_weights),
          uniform_rows({5}, 13, 3)};
}

TEST_P(GpuUpdate, InProductsTrainsRight) {
  for (const std::int64_t least_weights : {0, 100}) {
    const Training training = partly_updated(least_weights);
    const auto steps = std::ssize(training.workload.order);
    const Trajectory expected = reference_trajectory(training.workload, training.data, 2 * steps);
    for (const Precision precision : {Precision::f32, Precision::tf32}) {
      for (const Execution execution :
           {Execution::eager, Execution::graph, Execution::graph_epoch}) {
        const auto program =
            started(gpu(), training, {.precision = precision, .execution = execution});
        EXPECT_NO_THROW(verify(*program, training.workload, expected, precision))
            << least_weights << to_string(precision) << static_cast<int>(execution);
      }
    }
    const auto program = started(gpu(), training, {.keep_activations = true});
    Reference reference(training.workload);
    set_data(reference, training.data);
    EXPECT_NO_THROW(verify_operations(*program, reference, steps, Precision::f32)) << least_weights;
  }
}

INSTANTIATE_TEST_SUITE_P(Gpu, GpuUpdate, testing::ValuesIn(gpu_variants()), labelled);

}  // namespace

// ---- The copies of parameters in 16 bits that optimizers write: after an upload and after any
// number of steps they are the parameters, rounded.

namespace {

class GpuCopies : public OnGpu {};

/// Layers of odd widths: parameters of 1 to 91 elements, some of which share a vector's width.
Training copied_training(const Optimizer& optimizer, Precision precision, std::int64_t accumulate) {
  const Model model = mlp("odd", {7, 13, 1, 5}, Activation::relu);
  return {fuse(training_epoch(model, {.rows = 13,
                                      .batch = 4,
                                      .optimizer = optimizer,
                                      .accumulate = accumulate,
                                      .precision = precision})),
          uniform_rows({7}, 13, 5)};
}

void expect_rounded(Program& program, const Workload& workload) {
  const auto copies = cuda::choose_parameter_copies(workload);
  EXPECT_EQ(copies.size(), 5);
  for (const auto& [parameter, copy] : copies) {
    const std::vector<double> values = download(program, workload, parameter);
    std::vector<double> rounded(values.size());
    with_float(workload[copy].type, [&](auto zero) {
      std::transform(values.begin(), values.end(), rounded.begin(), [](double value) -> double {
        return widened(narrowed<decltype(zero)>(static_cast<float>(value)));
      });
    });
    EXPECT_EQ(download(program, workload, copy), rounded) << workload[parameter].name;
  }
}

TEST_P(GpuCopies, AreTheParametersRounded) {
  for (const Precision precision : {Precision::bf16, Precision::f16}) {
    for (const Optimizer& optimizer : {Optimizer{SgdOptions{}}, Optimizer{AdamWOptions{}}}) {
      for (const Execution execution : {Execution::eager, Execution::graph_epoch}) {
        const Training training = copied_training(optimizer, precision, 2);
        const auto program =
            started(gpu(), training, {.precision = precision, .execution = execution});
        expect_rounded(*program, training.workload);
        program->enqueue(0, std::ssize(training.workload.order));
        program->wait();
        expect_rounded(*program, training.workload);
        restart(*program, training.workload);
        expect_rounded(*program, training.workload);
      }
    }
  }
}

/// With activations kept, what a step's products read is what the optimizer wrote before it.
TEST_P(GpuCopies, AreVerifiedOperationByOperation) {
  for (const Precision precision : {Precision::bf16, Precision::f16}) {
    for (const Optimizer& optimizer :
         {Optimizer{SgdOptions{}}, Optimizer{AdamWOptions{.learning_rate = 0.01}}}) {
      const Training training = copied_training(optimizer, precision, 1);
      const auto program =
          started(gpu(), training, {.precision = precision, .keep_activations = true});
      Reference reference(training.workload);
      set_data(reference, training.data);
      EXPECT_NO_THROW(verify_operations(*program, reference, 3, precision));
    }
  }
}

/// A mask that says 1 at an input of 0, and sums that come to 0 only because they are rounded
/// before the bias is added: at the second step, when there are biases.
TEST_P(GpuCopies, GradientsMayPassAtZero) {
  const Task task = find_model("disc-3");
  const Training training{fuse(training_epoch(task.model, {.rows = 1000,
                                                           .batch = task.batch,
                                                           .optimizer = task.optimizer,
                                                           .precision = Precision::bf16})),
                          task.generate(1000)};
  const auto program =
      started(gpu(), training, {.precision = Precision::bf16, .keep_activations = true});
  Reference reference(training.workload);
  set_data(reference, training.data);
  EXPECT_NO_THROW(verify_operations(*program, reference, 2, Precision::bf16));
}

INSTANTIATE_TEST_SUITE_P(Gpu, GpuCopies, testing::ValuesIn(gpu_variants()), labelled);

}  // namespace

}  // namespace crossover::test
