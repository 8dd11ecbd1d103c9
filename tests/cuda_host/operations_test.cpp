// SPDX-License-Identifier: Apache-2.0
// The GPU backend's own sources on the emulation: every operation and every golden run, against the
// reference.
#include "crossover/backend.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "crossover/catalogue.h"
#include "crossover/start.h"
#include "crossover/verify.h"
#include "cuda_host.h"
#include "emulated.h"
#include "golden.h"
#include "support.h"

namespace crossover::test {
namespace {

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
                                  label(std::get<1>(parameters.param)) +
                                  (std::get<2>(parameters.param) ? "" : "_no_epilogues");
                         });

TEST(EmulatedTf32, MatchesTheReference) {
  const auto backend = gpu();
  const double least = unit_roundoff(Precision::tf32) / 8;  // else nothing was rounded
  double largest = 0;
  for (const OperationCase& c : operation_cases()) {
    if (multiplies(c) && stored_precision(c.workload) == Precision::f32 &&
        !(thinned() && is_large(c)) && missing(c, *backend).empty()) {
      const auto program = backend->compile(c.workload, {.precision = Precision::tf32});
      expect_operation(c, *program, Precision::tf32);
      if (largest > least) {
        continue;
      }
      const Id last = static_cast<Id>(c.workload.tensors.size()) - 1;
      const auto exact = backend->compile(c.workload, {});
      expect_operation(c, *exact, Precision::f32);
      largest = std::max(largest, relative_error(download(*program, c.workload, last),
                                                 download(*exact, c.workload, last)));
    }
  }
  EXPECT_GT(largest, least);
}

/// Which lie channels-last in tf32 and plain in f32: EmulatedOperation has these.
TEST(EmulatedTf32, PoolsAndNormalizesAsF32Does) {
  const auto backend = gpu();
  for (const OperationCase& c : operation_cases()) {
    const bool of_images =
        c.name.find("Pool") != std::string::npos || c.name.find("BatchNorm") != std::string::npos;
    if (of_images && stored_precision(c.workload) == Precision::f32) {
      const auto program = backend->compile(c.workload, {.precision = Precision::tf32});
      expect_operation(c, *program, Precision::f32);
    }
  }
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
                         labelled);

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
    labelled);

TEST(EmulatedProgram, FindsAWrongGradientFactor) {
  const TrainingOptions options{
      .rows = 23, .batch = 5, .optimizer = SgdOptions{}, .precision = Precision::f16};
  const Workload right = training_epoch(residual_model(), options);
  Training wrong{right, uniform_rows({5}, 23, 3)};
  for (Step& step : wrong.workload.steps) {
    std::get<Update>(step.ops.back()).gradient_factor *= 1.5;
  }
  const Trajectory expected = reference_trajectory(right, wrong.data, 5);
  const auto program = started(*gpu(), wrong, {.precision = Precision::f16});
  program->enqueue(0, 5);
  EXPECT_THROW(verify_state(*program, right, expected), Mismatch);
}

}  // namespace
}  // namespace crossover::test
