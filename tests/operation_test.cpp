// SPDX-License-Identifier: Apache-2.0
// Every operation by itself, on every backend and thread count, against the reference.
#include <gtest/gtest.h>

#include "expect_operation.h"
#include "support.h"

namespace crossover::test {
namespace {

class Operation : public testing::TestWithParam<std::tuple<OperationCase, int>> {};

TEST_P(Operation, MatchesTheReference) {
  const auto& [c, threads] = GetParam();
  const auto backend = make_cpu_backend();
  const Precision precision = stored_precision(c.workload);
  if (const std::string refused =
          expect_operation_or_refusal(c, *backend, {.threads = threads, .precision = precision});
      !refused.empty()) {
    GTEST_SKIP() << refused;
  }
}

std::vector<int> thread_counts() { return thinned() ? std::vector{3} : std::vector{1, 2, 3}; }

INSTANTIATE_TEST_SUITE_P(Cpu, Operation,
                         testing::Combine(testing::ValuesIn(operation_cases()),
                                          testing::ValuesIn(thread_counts())),
                         [](const auto& parameters) {
                           return std::get<0>(parameters.param).name + "_" +
                                  std::to_string(std::get<1>(parameters.param)) + "_threads";
                         });

class GpuOperation : public testing::TestWithParam<std::tuple<OperationCase, Execution>> {};

TEST_P(GpuOperation, MatchesTheReference) {
  const CudaBackend gpu = make_cuda_backend();
  if (!gpu.backend) {
    GTEST_SKIP() << gpu.reason;
  }
  const auto& [c, execution] = GetParam();
  const Precision precision = stored_precision(c.workload);
  for (const Precision compiled : {precision, Precision::tf32}) {
    if (compiled == Precision::tf32 && precision != Precision::f32) {
      continue;
    }
    if (const std::string refused = expect_operation_or_refusal(
            c, *gpu.backend, {.precision = compiled, .execution = execution});
        !refused.empty()) {
      GTEST_SKIP() << refused;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Gpu, GpuOperation,
                         testing::Combine(testing::ValuesIn(operation_cases()),
                                          testing::Values(Execution::eager, Execution::graph)),
                         [](const auto& parameters) {
                           return std::get<0>(parameters.param).name +
                                  (std::get<1>(parameters.param) == Execution::eager ? "_eager"
                                                                                     : "_graph");
                         });

}  // namespace
}  // namespace crossover::test
