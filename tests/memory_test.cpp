// SPDX-License-Identifier: Apache-2.0
#include "crossover/memory.h"

#include <gtest/gtest.h>

#include "support.h"

namespace crossover::test {
namespace {

Workload epoch(std::int64_t rows, std::int64_t accumulate) {
  return fuse(training_epoch(
      residual_model(),
      {.rows = rows, .batch = 5, .optimizer = AdamWOptions{}, .accumulate = accumulate}));
}

TEST(MemoryPlan, KeepsTensorsOfOneStepApart) {
  for (const std::int64_t accumulate : {1, 3}) {
    const Workload workload = epoch(13, accumulate);
    const MemoryPlan plan = plan_memory(workload);
    for (const Step& step : workload.steps) {
      std::vector<Id> used;
      for (const Op& op : step.ops) {
        const Operands ids = operands(op);
        used.insert(used.end(), ids.reads.begin(), ids.reads.end());
        used.insert(used.end(), ids.writes.begin(), ids.writes.end());
      }
      for (const Id a : used) {
        for (const Id b : used) {
          const std::int64_t at_a = plan.offset[static_cast<std::size_t>(a)];
          const std::int64_t at_b = plan.offset[static_cast<std::size_t>(b)];
          if (a == b || workload[a].role == Role::input || workload[b].role == Role::input) {
            continue;
          }
          ASSERT_GE(at_a, 0) << workload[a].name;
          EXPECT_EQ(at_a % MemoryPlan::alignment, 0);
          EXPECT_LE(at_a + bytes(workload[a]), plan.bytes);
          EXPECT_TRUE(at_a + bytes(workload[a]) <= at_b || at_b + bytes(workload[b]) <= at_a)
              << workload[a].name << " and " << workload[b].name << " overlap";
        }
      }
    }
  }
}

TEST(MemoryPlan, SharesActivationsBetweenSteps) {
  // The short last batch needs less than the full ones before it: nothing is added for it but its
  // rows.
  const MemoryPlan with = plan_memory(epoch(13, 1));
  const MemoryPlan without = plan_memory(epoch(10, 1));
  EXPECT_LE(with.bytes - without.bytes, 4 * MemoryPlan::alignment);
}

TEST(MemoryPlan, LaysParametersGradientsAndStatesInParallel) {
  const Workload workload = epoch(10, 1);
  const MemoryPlan plan = plan_memory(workload);
  const auto parameters = tensors_of(workload, Role::parameter);
  const auto gradients = tensors_of(workload, Role::gradient);
  const auto states = tensors_of(workload, Role::state);
  const auto at = [&](Id id) { return plan.offset[static_cast<std::size_t>(id)]; };
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    EXPECT_EQ(at(parameters[i]) - at(parameters[0]), at(gradients[i]) - at(gradients[0]));
    EXPECT_EQ(at(parameters[i]) - at(parameters[0]), at(states[i]) - at(states[0]));
  }
}

TEST(MemoryPlan, GivesEachTensorTheBytesThatItsDeviceAsksFor) {
  const Workload workload = epoch(13, 1);
  std::vector<std::int64_t> physical;
  for (const Tensor& tensor : workload.tensors) {
    physical.push_back(2 * bytes(tensor) + 1);
  }
  const MemoryPlan plan = plan_memory(workload, physical);
  for (const Role role : {Role::parameter, Role::gradient, Role::state}) {
    const std::vector<Id> ids = tensors_of(workload, role);
    for (std::size_t i = 1; i < ids.size(); ++i) {
      const auto before = static_cast<std::size_t>(ids[i - 1]);
      EXPECT_GE(plan.offset[static_cast<std::size_t>(ids[i])] - plan.offset[before],
                physical[before]);
    }
  }
  EXPECT_GT(plan.bytes, 2 * plan_memory(workload).bytes - 64 * std::ssize(workload.tensors));
}

TEST(MemoryPlan, StreamsInputsThroughSeveralBuffersAndHoldsNoData) {
  const Workload workload = epoch(13, 1);
  const StreamedMemoryPlan streamed = plan_streamed_memory(workload, 2);
  std::int64_t inputs_end = 0;
  for (const Id id : tensors_of(workload, Role::input)) {
    const std::int64_t at = streamed.plan.offset[static_cast<std::size_t>(id)];
    ASSERT_GE(at, 0);
    inputs_end = std::max(inputs_end, at + bytes(workload[id]));
  }
  EXPECT_LE(inputs_end, streamed.input_bytes);
  for (const Id id : tensors_of(workload, Role::data)) {
    EXPECT_EQ(streamed.plan.offset[static_cast<std::size_t>(id)], -1);
  }
  for (const Id id : tensors_of(workload, Role::parameter)) {
    EXPECT_GE(streamed.plan.offset[static_cast<std::size_t>(id)], 2 * streamed.input_bytes);
  }
}

TEST(MemoryPlan, RefusesWhatDoesNotFit63Bits) {
  OneOp one;
  const Shape huge{std::int64_t{1} << 40, std::int64_t{1} << 40};
  const Id x = one.tensor("x", huge);
  one.operation(Activate{.x = x, .y = one.tensor("y", huge), .activation = Activation::relu});
  EXPECT_THROW(static_cast<void>(plan_memory(one.workload)), std::overflow_error);
}

TEST(AvailableMemory, IsSomethingAndNotMoreThanExists) {
  EXPECT_GT(available_memory_bytes(), 0);
  EXPECT_LT(available_memory_bytes(), std::int64_t{1} << 50);
}

}  // namespace
}  // namespace crossover::test
