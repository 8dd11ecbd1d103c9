// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/runtime.h"
#include "crossover/backend.h"
#include "crossover/catalogue.h"
#include "crossover/networks.h"
#include "crossover/start.h"
#include "crossover/verify.h"
#include "cuda_host.h"
#include "emulated.h"
#include "support.h"

namespace crossover::test {

// ---- What the GPU's plan() decides and says, and what instantiate() then does.

namespace {

TEST(EmulatedPlan, AsksTheLibraryAndTakesNoMemory) {
  const Training training = accumulating();
  for (const unsigned refused : {0U, ~0U}) {
    cuda_host::reset();
    cuda_host::device().refused_epilogues = refused;
    for (const GpuMode& mode : gpu_modes()) {
      if (!mode.options.graph_form) {
        continue;  // it is instantiate() that decides: see below
      }
      const auto backend = gpu();
      const std::int64_t asked = cuda_host::calls_of("cublasLtMatmulAlgoGetHeuristic");
      const auto plan = backend->plan(training.workload, mode.options);
      const std::int64_t asked_by_plan = cuda_host::calls_of("cublasLtMatmulAlgoGetHeuristic");
      EXPECT_GT(asked_by_plan, asked);
      EXPECT_EQ(cuda_host::live_device_bytes(), 0);
      const std::int64_t bytes = plan->bytes();
      const auto program = plan->instantiate();
      EXPECT_EQ(cuda_host::calls_of("cublasLtMatmulAlgoGetHeuristic"), asked_by_plan)
          << mode.name << ": decided twice";
      EXPECT_EQ(static_cast<std::int64_t>(cuda_host::live_device_bytes()), bytes) << mode.name;
      EXPECT_EQ(plan->launches(), program->facts().launches);
    }
  }
}

TEST(EmulatedPlan, IsInstantiatedOnce) {
  const Training training = accumulating();
  const auto backend = gpu();
  const auto plan = backend->plan(training.workload, {});
  const auto program = plan->instantiate();
  EXPECT_THROW(static_cast<void>(plan->instantiate()), std::logic_error);
}

/// Launches, in the words of Backend::estimate(), against what the device executes.
TEST(EmulatedPlan, CountsWhatTheDeviceExecutes) {
  const Training training = accumulating();
  const auto steps = std::ssize(training.workload.order);
  for (const unsigned refused : {0U, ~0U}) {
    cuda_host::reset();
    cuda_host::device().refused_epilogues = refused;
    for (const GpuMode& mode : gpu_modes()) {
      const auto program = started(*gpu(), training, mode.options);
      program->wait();
      const std::int64_t before = cuda_host::executed();
      program->enqueue(0, steps);
      program->wait();
      // Loops are operations of the emulation, and one more sets their conditions at first.
      const std::int64_t loops = program->facts().graph_loops.value_or(0);
      EXPECT_EQ(cuda_host::executed() - before,
                program->facts().launches + loops + (loops > 0 ? 1 : 0))
          << mode.name;
    }
  }
}

TEST(EmulatedDevice, IsTheOneOfThatNumber) {
  cuda_host::device().count = 2;
  const cuda::Discovery second = cuda::discover(1);
  EXPECT_EQ(second.reason, "");
  EXPECT_EQ(second.device.ordinal, 1);
  cuda_host::device().count = 1;
  EXPECT_EQ(cuda::discover(1).reason, "none (no device)");
  EXPECT_THROW(second.device.use(), std::runtime_error);
}

}  // namespace

// ---- Graphs in each of their forms: what runs side by side trains the same in any order that the
// form leaves open, and the choice between forms leaves nothing behind.

namespace {

Training layered(const Model& model, Precision precision, std::int64_t least_weights) {
  const Workload workload =
      fuse(training_epoch(model, {.rows = 8,
                                  .batch = 3,
                                  .optimizer = SgdOptions{.learning_rate = 0.1},
                                  .precision = precision}));
  return {least_weights > 0 ? fuse_update(workload, least_weights) : workload,
          uniform_data(model, 8)};
}

/// Networks of several kinds; of the multilayer perceptron one is updated in its product.
std::vector<Training> kinds_of_training() {
  const Model layers = mlp("m", {5, 12, 10, 3}, Activation::relu);
  const Model images = small_alexnet();
  const Model sequences = small_language_model();
  return {accumulating(), layered(layers, Precision::f32, 100), layered(images, Precision::f32, 0),
          layered(sequences, Precision::f32, 0)};
}

TEST(EmulatedGraphForm, TrainsRightInEveryOrderThatItLeavesOpen) {
  for (const Training& training : kinds_of_training()) {
    const auto steps = std::ssize(training.workload.order);
    const Trajectory expected = reference_trajectory(training.workload, training.data, steps);
    for (const Execution execution : {Execution::graph, Execution::graph_epoch}) {
      for (const bool loops : {false, true}) {
        const GraphForm form{.loops = loops, .streams = 2};
        if (loops && execution == Execution::graph) {
          continue;
        }
        for (const std::uint64_t seed : {1, 2, 3}) {
          cuda_host::reset(seed);
          const auto program =
              started(*gpu(), training, {.execution = execution, .graph_form = form});
          program->enqueue(0, steps);
          EXPECT_NO_THROW(verify(*program, training.workload, expected)) << seed << loops;
          EXPECT_EQ(program->facts().graph_form->streams, 2);
        }
      }
    }
  }
}

TEST(EmulatedGraphForm, TrainsRightWithCopiesIn16Bits) {
  const Training training = layered(small_alexnet(), Precision::bf16, 0);
  const auto steps = std::ssize(training.workload.order);
  const Trajectory expected = reference_trajectory(training.workload, training.data, steps);
  cuda_host::reset(4);
  const auto program = started(*gpu(), training,
                               {.precision = Precision::bf16,
                                .execution = Execution::graph_epoch,
                                .graph_form = GraphForm{.loops = true, .streams = 2}});
  program->enqueue(0, steps);
  EXPECT_NO_THROW(verify(*program, training.workload, expected, Precision::bf16));
}

TEST(EmulatedGraphForm, OfTheFastestIsOneThatTrainsRight) {
  const Training training = accumulating();
  const auto steps = std::ssize(training.workload.order);
  const Trajectory expected = reference_trajectory(training.workload, training.data, steps);
  for (const Execution execution : {Execution::graph, Execution::graph_epoch}) {
    cuda_host::reset();
    const auto backend = gpu();
    const auto plan =
        backend->plan(training.workload, {.execution = execution, .graph_form = std::nullopt});
    const std::int64_t most = plan->bytes();
    const auto program = plan->instantiate();
    ASSERT_TRUE(program->facts().graph_form);
    EXPECT_LE(plan->bytes(), most);
    EXPECT_EQ(static_cast<std::int64_t>(cuda_host::live_device_bytes()), plan->bytes())
        << "the others are gone";
    EXPECT_EQ(program->facts().launches, plan->launches());
    for (const Id id : tensors_of(training.workload, Role::parameter)) {
      EXPECT_THAT(download(*program, training.workload, id), testing::Each(0.0));
    }
    set_data(*program, training.workload, training.data);
    restart(*program, training.workload);
    program->enqueue(0, steps);
    EXPECT_NO_THROW(verify(*program, training.workload, expected));
    const auto again = backend->compile(
        training.workload, {.execution = execution, .graph_form = program->facts().graph_form});
    EXPECT_EQ(again->facts().graph_form, program->facts().graph_form);
  }
}

TEST(EmulatedGraphForm, OfTheFastestHasNoLoopsThatTheDriverRefuses) {
  cuda_host::device().refuses_loops = true;
  const auto program = gpu()->compile(
      accumulating().workload, {.execution = Execution::graph_epoch, .graph_form = std::nullopt});
  EXPECT_FALSE(program->facts().graph_form->loops);
}

TEST(EmulatedGraphForm, IsOneStreamWhereTheMemoryHoldsNoSecondWorkspace) {
  const Training training = accumulating();
  constexpr GraphForm one_stream{.loops = false, .streams = 1};
  const auto bytes = [&](const GraphForm& form) {
    return gpu()
        ->plan(training.workload, {.execution = Execution::graph, .graph_form = form})
        ->bytes();
  };
  cuda_host::device().bytes =
      static_cast<std::size_t>(bytes(one_stream) + bytes({.loops = false, .streams = 2})) / 2;
  const auto program = gpu()->compile(training.workload,
                                      {.execution = Execution::graph, .graph_form = std::nullopt});
  EXPECT_EQ(program->facts().graph_form, one_stream);
}

TEST(EmulatedGraphForm, IsThatOfGraphsAlone) {
  const Training training = accumulating();
  for (const std::optional<GraphForm>& asked : {std::optional<GraphForm>(), {GraphForm{}}}) {
    EXPECT_EQ(gpu()->compile(training.workload, {.graph_form = asked})->facts().graph_form,
              std::nullopt);
  }
}

}  // namespace

}  // namespace crossover::test
