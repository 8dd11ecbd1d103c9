// SPDX-License-Identifier: Apache-2.0
// Which parameters' copies in 16 bits the CUDA backend leaves to the optimizer, and where they lie.
// Needs no CUDA.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "../src/cuda/plan/narrow.h"
#include "crossover/memory.h"
#include "cuda_plans.h"

namespace crossover::test {
namespace {

using cuda::CastLaunch;
using cuda::choose_parameter_copies;
using cuda::LaunchPlan;
using cuda::ParameterCopy;
using PlannedCast = cuda::CastSpan<cuda::Planned>;
using Span = cuda::UpdateSpan<cuda::Planned>;

Workload bf16_epoch(const Optimizer& optimizer, std::int64_t accumulate = 1) {
  return fuse(
      training_epoch(mlp("m", {4, 8, 6, 2}, Activation::relu), {.rows = 25,
                                                                .batch = 5,
                                                                .optimizer = optimizer,
                                                                .accumulate = accumulate,
                                                                .precision = Precision::bf16}));
}

LaunchPlan copies_plan(const Workload& workload, CompileOptions options = {}) {
  options.precision = Precision::bf16;
  return cuda::make_plan(workload, options, everything);
}

std::vector<PlannedCast> casts_of(const LaunchPlan& plan) {
  std::vector<PlannedCast> all;
  for (const auto& launch : launches_of<CastLaunch>(plan)) {
    all.insert(all.end(), launch.casts.begin(), launch.casts.end());
  }
  return all;
}

std::vector<Span> spans_of(const LaunchPlan& plan) {
  std::vector<Span> all;
  for (const auto& launch : launches_of<cuda::UpdateLaunch>(plan)) {
    all.insert(all.end(), launch.spans.begin(), launch.spans.end());
  }
  return all;
}

/// The copy's place as the spans have it; -1: no span writes it.
std::int64_t written_at(const std::vector<Span>& spans, std::int64_t parameter) {
  for (const Span& span : spans) {
    const std::int64_t bytes = parameter - span.w.offset;
    if (bytes >= 0 && bytes < 4 * span.count && span.copy.exists()) {
      return span.copy.offset + bytes / 2;
    }
  }
  return -1;
}

TEST(CudaCopies, AreWrittenByTheOptimizer) {
  for (const auto& [optimizer, pieces] :
       {std::pair{Optimizer{SgdOptions{}}, 1}, {AdamWOptions{}, 6}}) {  // weights alone decay
    for (const std::int64_t accumulate : {1, 2}) {
      const Workload workload = bf16_epoch(optimizer, accumulate);
      const LaunchPlan plan = copies_plan(workload);
      EXPECT_EQ(plan.copies.size(), 5);  // the last bias is added in f32
      const std::vector<PlannedCast> casts = casts_of(plan);
      ASSERT_EQ(casts.size(), workload.steps.size());
      EXPECT_TRUE(casts[0].x.is_view());  // the batch is all that is left to cast
      const std::vector<Span> spans = spans_of(plan);
      EXPECT_EQ(spans.size() % static_cast<std::size_t>(pieces), 0);
      for (const ParameterCopy& copy : plan.copies) {
        EXPECT_EQ(copy.offset % MemoryPlan::alignment, 0);
        EXPECT_EQ(written_at(spans, plan[copy.parameter].offset), copy.offset);
        EXPECT_EQ(plan[copy.copy].offset, copy.offset);
      }
      EXPECT_EQ(spans[0].copy.type, Type::bf16);
    }
  }
}

/// A cast of a parameter, a reader of it, and plain gradient descent.
struct Copied {
  OneOp one;
  Id w = one.tensor("w", {16}, Role::parameter);
  Id g = one.tensor("g", {16}, Role::gradient);
  Id copy = one.tensor("w bf16", {16}, Role::activation, Type::bf16);
  Id y = one.tensor("y", {16}, Role::activation, Type::bf16);

  Copied() {
    one.operation(Cast{.x = w, .y = copy});
    ops().emplace_back(Activate{.x = copy, .y = y, .activation = Activation::relu});
    ops().emplace_back(Update{.rule = SgdOptions{1}, .parameters = {w}, .gradients = {g}});
  }
  std::vector<Op>& ops() { return one.workload.steps[0].ops; }
  /// Not by std::swap(), which is compiled for each pair of operations.
  void move(std::ptrdiff_t from, std::ptrdiff_t to) {
    const Op moved = ops()[static_cast<std::size_t>(from)];
    ops().erase(ops().begin() + from);
    ops().insert(ops().begin() + to, moved);
  }
  [[nodiscard]] std::size_t chosen() const { return choose_parameter_copies(one.workload).size(); }
};

TEST(CudaCopies, AreOnlyThoseThatTheStepsCannotTellFromCasts) {
  EXPECT_EQ(Copied().chosen(), 1);

  Copied without_optimizer;
  without_optimizer.ops().pop_back();
  EXPECT_EQ(without_optimizer.chosen(), 0);

  Copied unread;  // a result
  unread.ops().erase(unread.ops().begin() + 1);
  EXPECT_EQ(unread.chosen(), 0);

  Copied read_after_the_update;
  read_after_the_update.move(2, 1);
  EXPECT_EQ(read_after_the_update.chosen(), 0);

  Copied read_before_the_cast;
  read_before_the_cast.move(1, 0);
  EXPECT_EQ(read_before_the_cast.chosen(), 0);

  Copied read_by_a_step_without_cast;
  read_by_a_step_without_cast.one.workload.steps.push_back(
      {{read_by_a_step_without_cast.ops()[1]}});
  EXPECT_EQ(read_by_a_step_without_cast.chosen(), 0);

  Copied written_by_another;
  const Id other = written_by_another.one.tensor("other", {16});
  written_by_another.ops().emplace_back(
      Activate{.x = other, .y = written_by_another.w, .activation = Activation::relu});
  EXPECT_EQ(written_by_another.chosen(), 0);

  Copied overwritten;
  overwritten.ops().insert(
      overwritten.ops().begin() + 2,
      Activate{.x = overwritten.y, .y = overwritten.copy, .activation = Activation::relu});
  EXPECT_EQ(overwritten.chosen(), 0);
}

TEST(CudaCopies, AreOneOfEachParameter) {
  Copied twice;
  const Id second = twice.one.tensor("second", {16}, Role::activation, Type::bf16);
  twice.ops().insert(twice.ops().begin() + 1, Cast{.x = twice.w, .y = second});
  twice.ops().insert(twice.ops().begin() + 3,
                     Activate{.x = second, .y = twice.y, .activation = Activation::relu});
  const auto chosen = choose_parameter_copies(twice.one.workload);
  ASSERT_EQ(chosen.size(), 1);
  EXPECT_EQ(chosen[0].copy, twice.copy);
  EXPECT_EQ(casts_of(copies_plan(twice.one.workload)).size(), 1);
}

}  // namespace
}  // namespace crossover::test
