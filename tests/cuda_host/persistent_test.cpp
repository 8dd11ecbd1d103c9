// SPDX-License-Identifier: Apache-2.0
// The kernel that trains a whole order, on the emulation: golden runs by blocks of several sizes,
// each operation against the reference, and what does not fit.
#include <gmock/gmock.h>

#include <bit>

#include "crossover/backend.h"
#include "crossover/catalogue.h"
#include "crossover/verify.h"
#include "cuda_host.h"
#include "golden.h"
#include "support.h"

namespace crossover::test {
namespace {

using testing::HasSubstr;

constexpr CompileOptions persistent{.execution = Execution::persistent};

std::unique_ptr<Backend> gpu() { return make_cuda_backend().backend; }

// ---- golden runs
// -----------------------------------------------------------------------------------

/// The case, its form, and the threads that a block may have at most.
class EmulatedPersistent : public testing::TestWithParam<std::tuple<Golden, Form, int>> {};

TEST_P(EmulatedPersistent, Trajectory) {
  const auto& [golden, form, threads] = GetParam();
  const Training training = golden.training(form);
  if (flops(golden, training.workload) > (CROSSOVER_SANITIZED ? 3e8 : 2e9)) {
    GTEST_SKIP() << "too slow on the emulation";
  }
  cuda_host::device().threads = threads;
  try {
    expect_golden(golden, training, *started(*gpu(), training, persistent));
  } catch (const Unsupported& error) {
    GTEST_SKIP() << error.what();
  }
}

INSTANTIATE_TEST_SUITE_P(Gpu, EmulatedPersistent,
                         testing::Combine(testing::ValuesIn(golden_mlps()),
                                          testing::Values(Form::fused, Form::update_fused),
                                          testing::Values(32, 128, 512)),
                         labelled);

}  // namespace
}  // namespace crossover::test
