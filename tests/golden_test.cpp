// SPDX-License-Identifier: Apache-2.0
// The reference and the CPU backend against golden training runs.
#include <gtest/gtest.h>

#include "crossover/start.h"
#include "golden.h"

namespace crossover::test {
namespace {

class ReferenceGolden : public testing::TestWithParam<Golden> {};

TEST_P(ReferenceGolden, Trajectory) {
  const Golden& golden = GetParam();
  const Training training = golden.training(Form::plain);
  if (CROSSOVER_SANITIZED && flops(golden, training.workload) > 2e9) {
    GTEST_SKIP() << "too slow under sanitizers; runs in the default build";
  }
  Reference reference(training.workload);
  set_data(reference, training.data);
  restart(reference);
  const Id loss = find(training.workload, "loss");
  // Both compute in float64; what is left is the order of their sums.
  expect_golden(
      golden, training.workload, 1e-9, 1e-8, 1e-9,
      [&](std::int64_t first, std::int64_t count) { reference.run(first, count); },
      [&] { return copy(reference[loss]); }, [&](Id id) { return copy(reference[id]); });
}

INSTANTIATE_TEST_SUITE_P(Mlp, ReferenceGolden, testing::ValuesIn(all_golden()),
                         [](const auto& parameters) { return label(parameters.param); });

class CpuGolden : public testing::TestWithParam<std::tuple<Golden, Form, int>> {};

TEST_P(CpuGolden, Trajectory) {
  const auto& [golden, form, threads] = GetParam();
  const Training training = golden.training(form);
  const auto program = started(*make_cpu_backend(), training, threads);
  expect_golden(golden, training, *program);
}

INSTANTIATE_TEST_SUITE_P(Mlp, CpuGolden,
                         testing::Combine(testing::ValuesIn(all_golden()),
                                          testing::ValuesIn(all_forms), testing::Values(1, 2)),
                         [](const auto& parameters) {
                           return label(std::get<0>(parameters.param)) + "_" +
                                  form_name(std::get<1>(parameters.param)) + "_" +
                                  std::to_string(std::get<2>(parameters.param)) + "_threads";
                         });

class GpuGolden : public testing::TestWithParam<std::tuple<Golden, GpuMode>> {};

TEST_P(GpuGolden, Trajectory) {
  const CudaBackend gpu = make_cuda_backend();
  if (!gpu.backend) {
    GTEST_SKIP() << gpu.reason;
  }
  const auto& [golden, mode] = GetParam();
  for (const Form form : all_forms) {
    const Training training = golden.training(form);
    const auto program = started(*gpu.backend, training, mode.options);
    expect_golden(golden, training, *program);
  }
}

INSTANTIATE_TEST_SUITE_P(Gpu, GpuGolden,
                         testing::Combine(testing::ValuesIn(all_golden()),
                                          testing::ValuesIn(gpu_modes())),
                         [](const auto& parameters) {
                           return label(std::get<0>(parameters.param)) + "_" +
                                  std::get<1>(parameters.param).name;
                         });

class CpuBf16 : public testing::TestWithParam<std::tuple<Golden, Form, int>> {};

TEST_P(CpuBf16, IsVerified) {
  const auto& [golden, form, threads] = GetParam();
  try {
    expect_verified(golden, form, *make_cpu_backend(),
                    {.threads = threads, .precision = Precision::bf16});
  } catch (const Unsupported& error) {
    GTEST_SKIP() << error.what();
  }
}

INSTANTIATE_TEST_SUITE_P(Mlp, CpuBf16,
                         testing::Combine(testing::ValuesIn(all_golden()),
                                          testing::ValuesIn(all_forms), testing::Values(1, 2)),
                         [](const auto& parameters) {
                           return label(std::get<0>(parameters.param)) + "_" +
                                  form_name(std::get<1>(parameters.param)) + "_" +
                                  std::to_string(std::get<2>(parameters.param)) + "_threads";
                         });

class GpuPrecision : public testing::TestWithParam<std::tuple<Golden, Precision>> {};

TEST_P(GpuPrecision, IsVerified) {
  const CudaBackend gpu = make_cuda_backend();
  if (!gpu.backend) {
    GTEST_SKIP() << gpu.reason;
  }
  const auto& [golden, precision] = GetParam();
  try {
    for (const Form form : all_forms) {
      expect_verified(golden, form, *gpu.backend, {.precision = precision});
    }
  } catch (const Unsupported& error) {
    GTEST_SKIP() << error.what();
  }
}

INSTANTIATE_TEST_SUITE_P(Gpu, GpuPrecision,
                         testing::Combine(testing::ValuesIn(all_golden()),
                                          testing::Values(Precision::tf32, Precision::bf16,
                                                          Precision::f16)),
                         [](const auto& parameters) {
                           return label(std::get<0>(parameters.param)) + "_" +
                                  to_string(std::get<1>(parameters.param));
                         });

}  // namespace
}  // namespace crossover::test
