// SPDX-License-Identifier: Apache-2.0
// The GPU backend's own sources on the emulation: every operation, every golden run, every
// placement and execution, against the reference.
#include "crossover/backend.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "crossover/catalogue.h"
#include "crossover/start.h"
#include "crossover/verify.h"
#include "cuda_host.h"
#include "emulated.h"
#include "golden.h"
#include "launches_cases.h"
#include "operation_cases.h"
#include "support.h"

namespace crossover::test {
namespace {

using cuda_host::Order;

std::string name_of(Execution execution) {
  switch (execution) {
    case Execution::eager:
      return "eager";
    case Execution::graph:
      return "graph";
    case Execution::graph_epoch:
      return "graph_epoch";
    default:
      break;  // not a GPU's
  }
  return "";
}

std::string name_of(Placement placement) {
  switch (placement) {
    case Placement::resident:
      return "resident";
    case Placement::pageable:
      return "pageable";
    case Placement::pinned:
      return "pinned";
    case Placement::pinned_async:
      return "pinned_async";
  }
  return "";
}

const auto executions = testing::Values(Execution::eager, Execution::graph, Execution::graph_epoch);
const auto placements = testing::Values(Placement::resident, Placement::pageable, Placement::pinned,
                                        Placement::pinned_async);

// ---- operations
// ------------------------------------------------------------------------------------

/// The case, how it executes, and whether cuBLASLt has algorithms for epilogues.
class EmulatedOperation
    : public testing::TestWithParam<std::tuple<OperationCase, Execution, bool>> {};

TEST_P(EmulatedOperation, MatchesTheReference) {
  const auto& [c, execution, epilogues] = GetParam();
  cuda_host::device().refused_epilogues = epilogues ? 0 : all_epilogues;
  const auto backend = gpu();
  if (const std::string reason = missing(c, *backend); !reason.empty()) {
    GTEST_SKIP() << reason;
  }
  const Precision precision = stored_precision(c.workload);
  const auto program =
      backend->compile(c.workload, {.precision = precision, .execution = execution});
  expect_operation(c, *program, precision);
}

/// Without test_all() no graph of an epoch, which launches an operation as a graph of a step does
/// (EmulatedMode has both), of graphs f32 alone (the same launches with other types), and refused
/// epilogues eagerly only: what is launched instead is decided before how.
std::vector<std::tuple<OperationCase, Execution, bool>> operations_to_run() {
  std::vector<std::tuple<OperationCase, Execution, bool>> all;
  for (const OperationCase& c : operation_cases()) {
    for (const Execution execution : {Execution::eager, Execution::graph, Execution::graph_epoch}) {
      for (const bool epilogues : {true, false}) {
        const bool eager = execution == Execution::eager && (epilogues || multiplies(c));
        const bool graph = execution == Execution::graph && epilogues &&
                           stored_precision(c.workload) == Precision::f32;
        if (test_all() || eager || graph) {
          all.emplace_back(c, execution, epilogues);
        }
      }
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Gpu, EmulatedOperation, testing::ValuesIn(operations_to_run()),
                         [](const auto& parameters) {
                           return std::get<0>(parameters.param).name + "_" +
                                  name_of(std::get<1>(parameters.param)) +
                                  (std::get<2>(parameters.param) ? "" : "_no_epilogues");
                         });

TEST(EmulatedTf32, MatchesTheReference) {
  const auto backend = gpu();
  double largest = 0;  // else nothing was rounded
  for (const OperationCase& c : operation_cases()) {
    if (multiplies(c) && stored_precision(c.workload) == Precision::f32 &&
        missing(c, *backend).empty()) {
      const auto program = backend->compile(c.workload, {.precision = Precision::tf32});
      expect_operation(c, *program, Precision::tf32);
      const Id last = static_cast<Id>(c.workload.tensors.size()) - 1;
      const auto exact = backend->compile(c.workload, {});
      expect_operation(c, *exact, Precision::f32);
      largest = std::max(largest, relative_error(download(*program, c.workload, last),
                                                 download(*exact, c.workload, last)));
    }
  }
  EXPECT_GT(largest, unit_roundoff(Precision::tf32) / 8);
}

class EmulatedTf32Factors : public testing::TestWithParam<std::pair<cuda_host::Tf32, Tf32Factors>> {
};

TEST_P(EmulatedTf32Factors, AreMeasuredAndAnEpochIsVerifiedByThem) {
  const auto [emulated, expected] = GetParam();
  cuda_host::device().tf32 = emulated;
  const Task task = find_model("disc-7");
  const TrainingOptions options{
      .rows = task.rows, .batch = task.batch, .optimizer = task.optimizer};
  const Workload workload = fuse(training_epoch(task.model, options));
  const Dataset data = task.generate(task.rows);
  const auto steps = std::ssize(workload.order);
  const Trajectory trajectory = reference_trajectory(workload, data, steps);
  const auto backend = gpu();
  EXPECT_EQ(backend->compile(workload, {})->facts().arithmetic.tf32, Tf32Factors::exact)
      << "in f32";
  const auto program = started(*backend, {workload, data}, {.precision = Precision::tf32});
  EXPECT_EQ(program->facts().arithmetic.tf32, expected);
  program->enqueue(0, steps);
  EXPECT_NO_THROW(verify_state(*program, workload, trajectory, Precision::tf32));
  const Id weight = find(workload, "layer 8 weight");
  std::vector<double> values = download(*program, workload, weight);
  std::transform(values.begin(), values.end(), values.begin(), [](double v) { return v * 1.004; });
  upload(*program, workload, weight, values);
  EXPECT_THROW(verify_state(*program, workload, trajectory, Precision::tf32), Mismatch);
}

INSTANTIATE_TEST_SUITE_P(Gpu, EmulatedTf32Factors,
                         testing::Values(std::pair{cuda_host::Tf32::exact, Tf32Factors::exact},
                                         std::pair{cuda_host::Tf32::rounded, Tf32Factors::rounded},
                                         std::pair{cuda_host::Tf32::truncated,
                                                   Tf32Factors::truncated}),
                         [](const auto& parameters) { return to_string(parameters.param.second); });

// ---- golden runs
// -----------------------------------------------------------------------------------

class EmulatedGolden : public testing::TestWithParam<std::tuple<Golden, Form, Execution>> {};

TEST_P(EmulatedGolden, Trajectory) {
  const auto& [golden, form, execution] = GetParam();
  const Training training = golden.training(form);
  if (flops(golden, training.workload) > (CROSSOVER_SANITIZED ? 3e8 : 2e9)) {
    GTEST_SKIP() << "too slow on the emulation";
  }
  const auto backend = gpu();
  const auto program = backend->compile(training.workload, {.execution = execution});
  set_data(*program, training.workload, training.data);
  restart(*program, training.workload);
  expect_golden(golden, training, *program);
}

INSTANTIATE_TEST_SUITE_P(Gpu, EmulatedGolden,
                         testing::Combine(testing::ValuesIn(golden_mlps()),
                                          testing::ValuesIn(all_forms), executions),
                         [](const auto& parameters) {
                           return label(std::get<0>(parameters.param)) + "_" +
                                  label(std::get<1>(parameters.param)) + "_" +
                                  name_of(std::get<2>(parameters.param));
                         });

class EmulatedPrecision : public testing::TestWithParam<std::tuple<Golden, Form, Precision>> {};

TEST_P(EmulatedPrecision, IsVerified) {
  const auto& [golden, form, precision] = GetParam();
  if (flops(golden, golden.training(form).workload) > 3e8) {
    GTEST_SKIP() << "too slow on the emulation";
  }
  for (const unsigned refused : {0U, all_epilogues}) {
    if (refused != 0 && precision == Precision::bf16 && !test_all()) {
      continue;  // the kernels in place of epilogues are those of f16
    }
    cuda_host::device().refused_epilogues = refused;
    for (const auto factors : {cuda_host::Tf32::rounded, cuda_host::Tf32::truncated}) {
      const bool one_of = precision == Precision::tf32 && (refused == 0 || test_all());
      if (one_of || factors == cuda_host::Tf32::rounded) {
        cuda_host::device().tf32 = factors;
        expect_verified(golden, form, *gpu(), {.precision = precision});
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Gpu, EmulatedPrecision,
    testing::Combine(testing::ValuesIn(golden_mlps()), testing::ValuesIn(all_forms),
                     testing::Values(Precision::tf32, Precision::bf16, Precision::f16)),
    [](const auto& parameters) {
      return label(std::get<0>(parameters.param)) + "_" + label(std::get<1>(parameters.param)) +
             "_" + to_string(std::get<2>(parameters.param));
    });

TEST(EmulatedProgram, FindsAWrongGradientFactor) {
  const TrainingOptions options{
      .rows = 23, .batch = 5, .optimizer = SgdOptions{}, .precision = Precision::f16};
  const Workload right = training_epoch(residual_model(), options);
  Training wrong{right, uniform_rows({5}, 23, 3)};
  for (Step& step : wrong.workload.steps) {
    std::get<Sgd>(step.ops.back()).gradient_factor *= 1.5;
  }
  const Trajectory expected = reference_trajectory(right, wrong.data, 5);
  const auto program = started(*gpu(), wrong, {.precision = Precision::f16});
  program->enqueue(0, 5);
  EXPECT_THROW(verify_state(*program, right, expected), Mismatch);
}

// ---- every mode
// ------------------------------------------------------------------------------------

/// Steps of two shapes, accumulation over two of them, a residual join, several epilogues.
Training small_training(bool fused) {
  Workload workload = training_epoch(
      residual_model(),
      {.rows = 23, .batch = 5, .optimizer = AdamWOptions{.learning_rate = 0.01}, .accumulate = 2});
  return {fused ? fuse(std::move(workload)) : std::move(workload), uniform_rows({5}, 23, 3)};
}

class EmulatedMode : public testing::TestWithParam<std::tuple<Placement, Execution, bool, bool>> {};

TEST_P(EmulatedMode, MatchesTheReferenceInWhateverOrder) {
  const auto& [placement, execution, loss_every_step, fused] = GetParam();
  const Training training = small_training(fused);
  const auto steps = static_cast<std::int64_t>(training.workload.order.size());
  const Trajectory expected = reference_trajectory(training.workload, training.data, steps);
  // Each mode as early as possible, as late as possible and shuffled; with test_all() six times.
  for (std::uint64_t seed = 0; seed < (test_all() ? 8 : 3); ++seed) {
    cuda_host::reset(seed, seed == 0 ? Order::eager : seed == 1 ? Order::lazy : Order::shuffled);
    const auto backend = gpu();
    const auto program = backend->compile(
        training.workload,
        {.execution = execution, .placement = placement, .loss_every_step = loss_every_step});
    for (int epoch = 0; epoch < 3; ++epoch) {
      set_data(*program, training.workload, training.data);
      restart(*program, training.workload);
      if (epoch == 0) {  // in parts
        program->enqueue(0, 1);
        program->enqueue(1, steps - 1);
      } else {
        program->enqueue(0, steps);
      }
      if (epoch != 1) {
        program->wait();
      }
      EXPECT_NO_THROW(verify_state(*program, training.workload, expected))
          << "seed " << seed << ", epoch " << epoch;
    }
    program->enqueue(0, steps);  // and is destroyed with work in flight
  }
}

TEST_P(EmulatedMode, CallsNothingThatWaitsOrAllocatesInTheTimedLoop) {
  const auto& [placement, execution, loss_every_step, fused] = GetParam();
  const Training training = small_training(fused);
  const auto steps = static_cast<std::int64_t>(training.workload.order.size());
  const auto backend = gpu();
  const auto program = backend->compile(
      training.workload,
      {.execution = execution, .placement = placement, .loss_every_step = loss_every_step});
  set_data(*program, training.workload, training.data);
  restart(*program, training.workload);
  const auto before = [](const char* function) { return cuda_host::calls_of(function); };
  const std::int64_t waits = before("cudaStreamSynchronize");
  const std::int64_t algorithms = before("cublasLtMatmulAlgoGetHeuristic");
  const std::int64_t memory = before("cudaMalloc") + before("cudaHostAlloc");
  program->enqueue(0, steps);
  EXPECT_EQ(cuda_host::calls_of("cudaDeviceSynchronize"), 0);
  EXPECT_EQ(cuda_host::calls_of("cudaMemcpy"), 0) << "which waits for the default stream";
  EXPECT_EQ(cuda_host::calls_of("cublasLtMatmulAlgoGetHeuristic"), algorithms);
  EXPECT_EQ(cuda_host::calls_of("cudaMalloc") + cuda_host::calls_of("cudaHostAlloc"), memory);
  if (!loss_every_step && placement != Placement::pageable) {
    EXPECT_EQ(cuda_host::calls_of("cudaStreamSynchronize"), waits);
  }
}

TEST_P(EmulatedMode, ProfilesEveryKindAndCanGoOn) {
  const auto& [placement, execution, loss_every_step, fused] = GetParam();
  const Training training = small_training(fused);
  const auto steps = static_cast<std::int64_t>(training.workload.order.size());
  const auto backend = gpu();
  const auto program = backend->compile(
      training.workload,
      {.execution = execution, .placement = placement, .loss_every_step = loss_every_step});
  set_data(*program, training.workload, training.data);
  restart(*program, training.workload);
  Profile profile = program->profile();
  for (const OpCategory kind :
       {OpCategory::product, OpCategory::elementwise, OpCategory::loss, OpCategory::update,
        OpCategory::launch, OpCategory::synchronization}) {
    EXPECT_TRUE(profile.contains(kind)) << static_cast<int>(kind);
  }
  EXPECT_EQ(profile.contains(OpCategory::copy_to_device), placement != Placement::resident);
  EXPECT_EQ(profile.contains(OpCategory::copy_from_device), loss_every_step);
  EXPECT_TRUE(std::all_of(profile.begin(), profile.end(),
                          [](const auto& part) { return part.second >= 0; }));
  restart(*program, training.workload);
  program->enqueue(0, steps);
  EXPECT_NO_THROW(verify_state(*program, training.workload,
                               reference_trajectory(training.workload, training.data, steps)));
}

INSTANTIATE_TEST_SUITE_P(Gpu, EmulatedMode,
                         testing::Combine(placements, executions, testing::Bool(), testing::Bool()),
                         [](const auto& parameters) {
                           return name_of(std::get<0>(parameters.param)) + "_" +
                                  name_of(std::get<1>(parameters.param)) +
                                  (std::get<2>(parameters.param) ? "_each_loss" : "") +
                                  (std::get<3>(parameters.param) ? "_fused" : "");
                         });

/// What compile() says of a training in the precision, on a device of that generation.
std::string refusal(int major, Precision precision) {
  cuda_host::device().major = major;
  const Workload workload = training_epoch(mlp("m", {4, 2}, Activation::relu),
                                           {.rows = 5, .batch = 5, .precision = precision});
  try {
    static_cast<void>(gpu()->compile(workload, {.precision = precision}));
  } catch (const Unsupported& error) {
    return error.what();
  }
  return "";
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

TEST(EmulatedProgram, TakesNoMoreMemoryThanItSays) {
  const Training training = small_training(true);
  const auto backend = gpu();
  const auto program = backend->compile(training.workload, {});
  EXPECT_LE(static_cast<std::int64_t>(cuda_host::live_device_bytes()),
            backend->plan(training.workload, {})->bytes());
}

}  // namespace
}  // namespace crossover::test
