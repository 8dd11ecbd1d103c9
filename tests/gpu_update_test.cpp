// SPDX-License-Identifier: Apache-2.0
// Weights that are updated in the product of their gradient, beside others that the optimizer
// updates.
#include <gtest/gtest.h>

#include "crossover/start.h"
#include "crossover/verify.h"
#include "gpu_variants.h"
#include "support.h"

namespace crossover::test {
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

INSTANTIATE_TEST_SUITE_P(Gpu, GpuUpdate, testing::ValuesIn(gpu_variants()),
                         [](const auto& parameters) { return parameters.param.name; });

}  // namespace
}  // namespace crossover::test
