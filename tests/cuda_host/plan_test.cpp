// SPDX-License-Identifier: Apache-2.0
// What the GPU's plan() decides and says, and what instantiate() then does.
#include <gtest/gtest.h>

#include "backend/runtime.h"
#include "crossover/backend.h"
#include "cuda_host.h"
#include "emulated.h"
#include "support.h"

namespace crossover::test {
namespace {

TEST(EmulatedPlan, AsksTheLibraryAndTakesNoMemory) {
  const Training training = accumulating();
  for (const unsigned refused : {0U, ~0U}) {
    cuda_host::reset();
    cuda_host::device().refused_epilogues = refused;
    for (const GpuMode& mode : gpu_modes()) {
      if (!mode.options.graph_form) {
        continue;  // it is instantiate() that decides: graph_forms_test.cpp
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
}  // namespace crossover::test
