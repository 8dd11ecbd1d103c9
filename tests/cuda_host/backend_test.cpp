// SPDX-License-Identifier: Apache-2.0
// The GPU backend's own sources on the emulation: every placement and execution, against the
// reference, and what it refuses.
#include "crossover/backend.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "crossover/catalogue.h"
#include "crossover/networks.h"
#include "crossover/start.h"
#include "crossover/verify.h"
#include "cuda_host.h"
#include "emulated.h"
#include "launches_cases.h"
#include "support.h"

namespace crossover::test {
namespace {

using cuda_host::Order;

const auto placements = testing::Values(Placement::resident, Placement::pageable, Placement::pinned,
                                        Placement::pinned_async);

/// Steps of two shapes, accumulation over two of them, a residual join, several epilogues.
Training small_training(bool fused) {
  Workload workload = training_epoch(
      residual_model(),
      {.rows = 23, .batch = 5, .optimizer = AdamWOptions{.learning_rate = 0.01}, .accumulate = 2});
  return {fused ? fuse(std::move(workload)) : std::move(workload), uniform_rows({5}, 23, 3)};
}

class EmulatedMode : public testing::TestWithParam<std::tuple<Placement, Execution, bool, bool>> {
 protected:
  [[nodiscard]] static CompileOptions options() {
    const auto& [placement, execution, loss_every_step, fused] = GetParam();
    return {.execution = execution, .placement = placement, .loss_every_step = loss_every_step};
  }
  const Training training_ = small_training(std::get<3>(GetParam()));
  const std::int64_t steps_ = std::ssize(training_.workload.order);
};

TEST_P(EmulatedMode, MatchesTheReferenceInWhateverOrder) {
  const Trajectory expected = reference_trajectory(training_.workload, training_.data, steps_);
  // Each mode as early as possible, as late as possible and shuffled; with test_all() six times.
  for (std::uint64_t seed = 0; seed < (test_all() ? 8 : 3); ++seed) {
    cuda_host::reset(seed, seed == 0 ? Order::eager : seed == 1 ? Order::lazy : Order::shuffled);
    const auto program = gpu()->compile(training_.workload, options());
    for (int epoch = 0; epoch < 3; ++epoch) {
      set_data(*program, training_.workload, training_.data);
      restart(*program, training_.workload);
      if (epoch == 0) {  // in parts
        program->enqueue(0, 1);
        program->enqueue(1, steps_ - 1);
      } else {
        program->enqueue(0, steps_);
      }
      if (epoch != 1) {
        program->wait();
      }
      EXPECT_NO_THROW(verify_state(*program, training_.workload, expected))
          << "seed " << seed << ", epoch " << epoch;
    }
    program->enqueue(0, steps_);  // and is destroyed with work in flight
  }
}

TEST_P(EmulatedMode, CallsNothingThatWaitsOrAllocatesInTheTimedLoop) {
  const auto program = started(*gpu(), training_, options());
  const auto before = [](const char* function) { return cuda_host::calls_of(function); };
  const std::int64_t waits = before("cudaStreamSynchronize");
  const std::int64_t algorithms = before("cublasLtMatmulAlgoGetHeuristic");
  const std::int64_t memory = before("cudaMalloc") + before("cudaHostAlloc");
  program->enqueue(0, steps_);
  EXPECT_EQ(cuda_host::calls_of("cublasLtMatmulAlgoGetHeuristic"), algorithms);
  EXPECT_EQ(cuda_host::calls_of("cudaMalloc") + cuda_host::calls_of("cudaHostAlloc"), memory);
  if (!options().loss_every_step && options().placement != Placement::pageable) {
    EXPECT_EQ(cuda_host::calls_of("cudaStreamSynchronize"), waits);
  }
}

TEST_P(EmulatedMode, ProfilesEveryKindAndCanGoOn) {
  const auto program = started(*gpu(), training_, options());
  Profile profile = program->profile();
  for (const OpCategory kind :
       {OpCategory::product, OpCategory::elementwise, OpCategory::loss, OpCategory::update,
        OpCategory::launch, OpCategory::synchronization}) {
    EXPECT_TRUE(profile.contains(kind)) << static_cast<int>(kind);
  }
  EXPECT_EQ(profile.contains(OpCategory::copy_to_device),
            options().placement != Placement::resident);
  EXPECT_EQ(profile.contains(OpCategory::copy_from_device), options().loss_every_step);
  EXPECT_TRUE(std::all_of(profile.begin(), profile.end(),
                          [](const auto& part) { return part.second >= 0; }));
  restart(*program, training_.workload);
  program->enqueue(0, steps_);
  EXPECT_NO_THROW(verify_state(*program, training_.workload,
                               reference_trajectory(training_.workload, training_.data, steps_)));
}

INSTANTIATE_TEST_SUITE_P(Gpu, EmulatedMode,
                         testing::Combine(placements, executions, testing::Bool(), testing::Bool()),
                         [](const auto& parameters) {
                           return name_of(std::get<0>(parameters.param)) + "_" +
                                  label(std::get<1>(parameters.param)) +
                                  (std::get<2>(parameters.param) ? "_each_loss" : "") +
                                  (std::get<3>(parameters.param) ? "_fused" : "");
                         });

/// What compile() says of a training in the precision, on a device of that generation.
std::string refusal(int major, Precision precision) {
  cuda_host::device().major = major;
  const Workload workload = training_epoch(mlp("m", {4, 2}, Activation::relu),
                                           {.rows = 5, .batch = 5, .precision = precision});
  return message_of<Unsupported>(
      [&] { static_cast<void>(gpu()->compile(workload, {.precision = precision})); });
}

TEST(EmulatedProgram, RunsInEveryModeIn16Bits) {
  const Dataset data = uniform_rows({5}, 23, 3);
  for (const Precision precision : {Precision::bf16, Precision::f16}) {
    const Workload workload = fuse(training_epoch(residual_model(), {.rows = 23,
                                                                     .batch = 5,
                                                                     .optimizer = AdamWOptions{},
                                                                     .accumulate = 2,
                                                                     .precision = precision}));
    const Trajectory expected = reference_trajectory(workload, data, 5);
    for (GpuMode mode : gpu_modes()) {
      cuda_host::reset(precision == Precision::f16 ? 1 : 2);
      mode.options.precision = precision;
      const auto program = started(*gpu(), {workload, data}, mode.options);
      program->enqueue(0, 5);
      EXPECT_NO_THROW(verify_state(*program, workload, expected)) << mode.name;
    }
  }
}

/// Of two batches, one behind the other, in every mode that has a single pass.
void expect_outputs(const Model& model, Precision precision) {
  const Workload pass = forward_pass(model, 3, precision);
  const Dataset data = uniform_data(model, 3);
  const std::vector<double> expected = reference_outputs(pass, data);
  for (GpuMode mode : gpu_modes()) {
    if (mode.options.execution == Execution::persistent) {
      continue;  // it trains
    }
    mode.options.precision = precision;
    const auto backend = gpu();
    const Workload arranged = backend->optimize(pass, mode.options);
    const auto program = backend->compile(arranged, mode.options);
    restart(*program, arranged);
    for (int batch = 0; batch < 2; ++batch) {
      set_inputs(*program, arranged, data);
      program->enqueue(0, 1);
      EXPECT_NO_THROW(verify_outputs(*program, arranged, expected, precision))
          << model.name << " in " << mode.name;
    }
  }
}

TEST(EmulatedProgram, PassesForwardInEveryMode) {
  const std::vector<Model> models{
      residual_model(), line_model(), asking_model(),
      gpt({.vocabulary = 7, .width = 8, .layers = 1, .heads = 2, .time = 4})};
  for (const Model& model : models) {
    expect_outputs(model, Precision::f32);
  }
  for (const Precision precision : {Precision::bf16, Precision::f16}) {
    expect_outputs(line_model(), precision);
    expect_outputs(residual_model(), precision);
  }
}

TEST(EmulatedProgram, LaunchesWhatIsToldBeforeItIsCompiled) {
  const auto backend = gpu();
  std::size_t pair = 0;
  for (const Workload& workload : launches_cases()) {
    const Workload fused = fuse(workload);
    for (const GpuMode& mode : gpu_modes()) {
      if (!mode.options.graph_form || (pair++ % 3 != 0 && !test_all())) {
        continue;  // which of the forms is the fastest nobody can tell before
      }
      EXPECT_EQ(backend->estimate(fused, mode.options).launches,
                backend->compile(fused, mode.options)->facts().launches)
          << mode.name;
    }
  }
}

TEST(EmulatedProgram, RefusesPrecisionsThatTheDeviceHasNot) {
  for (const Precision precision :
       {Precision::f32, Precision::tf32, Precision::bf16, Precision::f16}) {
    EXPECT_EQ(refusal(8, precision), "");
  }
  EXPECT_EQ(refusal(7, Precision::f16), "");
  EXPECT_THAT(
      refusal(7, Precision::bf16),
      testing::HasSubstr(" has no products in bf16: they came with compute capability 8.0"));
  EXPECT_THAT(
      refusal(7, Precision::tf32),
      testing::HasSubstr(" has no products in tf32: they came with compute capability 8.0"));
  EXPECT_THAT(refusal(6, Precision::f16),
              testing::HasSubstr(" has no products in f16: they came with compute capability 7.0"));
}

TEST(EmulatedProgram, RefusesAPrecisionThatTheListIsNotOf) {
  const Training training = small_training(true);
  EXPECT_THROW(static_cast<void>(gpu()->compile(training.workload, {.precision = Precision::bf16})),
               std::invalid_argument);
}

TEST(EmulatedProgram, RefusesCopiesThatDoNotFit) {
  const Training training = small_training(true);
  const auto backend = gpu();
  const auto program = backend->compile(training.workload, {});
  const Id view = tensors_of(training.workload, Role::input).front();
  const Id parameter = tensors_of(training.workload, Role::parameter).front();
  EXPECT_THROW(upload(*program, training.workload, view, numbers(5 * 5, 1)), std::invalid_argument);
  EXPECT_THROW(upload(*program, training.workload, parameter, numbers(1, 1)),
               std::invalid_argument);
}

}  // namespace
}  // namespace crossover::test
