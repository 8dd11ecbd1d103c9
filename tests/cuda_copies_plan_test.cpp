// SPDX-License-Identifier: Apache-2.0
// Which parameters' copies in 16 bits the CUDA backend leaves to the optimizer, and where they lie.
// Needs no CUDA.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "../src/cuda/planning/narrow.h"
#include "../src/cuda/planning/plan.h"
#include "crossover/memory.h"
#include "support.h"

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
  return cuda::make_plan(workload, options, [](const cuda::ProductForm& /*form*/) { return true; });
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

TEST(CudaCopies, AreWrittenByTheOptimizerInOneLaunch) {
  const Workload workload = bf16_epoch(SgdOptions{});
  const LaunchPlan plan = copies_plan(workload);
  EXPECT_EQ(plan.copies.size(), 5);  // the last bias is added in f32
  const std::vector<PlannedCast> casts = casts_of(plan);
  ASSERT_EQ(casts.size(), 1);
  EXPECT_TRUE(casts[0].x.is_view());  // the batch is all that is left to cast
  const std::vector<Span> spans = spans_of(plan);
  EXPECT_EQ(spans.size(), 1);
  for (const ParameterCopy& copy : plan.copies) {
    EXPECT_EQ(copy.offset % MemoryPlan::alignment, 0);
    EXPECT_EQ(written_at(spans, plan[copy.parameter].offset), copy.offset);
    EXPECT_EQ(plan[copy.copy].offset, copy.offset);
  }
  EXPECT_EQ(spans[0].copy.type, Type::bf16);
}

TEST(CudaCopies, AreWrittenWithEachSpanOfAdamW) {
  const LaunchPlan plan = copies_plan(bf16_epoch(AdamWOptions{}));
  EXPECT_EQ(casts_of(plan).size(), 1);
  const std::vector<Span> spans = spans_of(plan);
  EXPECT_EQ(spans.size(), 6);  // weights decay, biases do not
  for (const ParameterCopy& copy : plan.copies) {
    EXPECT_EQ(written_at(spans, plan[copy.parameter].offset), copy.offset);
  }
}

TEST(CudaCopies, StayFromStepToStep) {
  const Workload workload = bf16_epoch(SgdOptions{}, 2);
  ASSERT_GT(workload.steps.size(), 2);
  for (const Placement placement : {Placement::resident, Placement::pinned_async}) {
    const LaunchPlan plan = copies_plan(workload, {.placement = placement});
    EXPECT_EQ(casts_of(plan).size(), workload.steps.size());  // of batches alone
    std::vector<std::pair<std::int64_t, std::int64_t>> places;
    for (const ParameterCopy& copy : plan.copies) {
      places.emplace_back(copy.offset, bytes(workload[copy.copy]));
    }
    std::set<Id> copies;
    for (const ParameterCopy& copy : plan.copies) {
      copies.insert(copy.copy);
    }
    for (std::size_t i = 0; i < workload.tensors.size(); ++i) {
      if (plan.tensors[i].offset < 0 || copies.contains(static_cast<Id>(i))) {
        continue;
      }
      for (const auto& [at, size] : places) {  // nothing else may lie where a copy does
        EXPECT_TRUE(at + size <= plan.tensors[i].offset ||
                    plan.tensors[i].offset + bytes(workload.tensors[i]) <= at)
            << workload.tensors[i].name;
      }
    }
    for (const auto& [at, size] : places) {
      EXPECT_LE(at + size, plan.row_losses);
    }
  }
}

TEST(CudaCopies, AreKeptAsTheyWereInTheStep) {
  const LaunchPlan plan = copies_plan(bf16_epoch(SgdOptions{}), {.keep_activations = true});
  std::size_t copied = 0;
  for (const PlannedCast& one : casts_of(plan)) {
    if (one.x.is_view()) {
      continue;
    }
    const auto copy = std::find_if(
        plan.copies.begin(), plan.copies.end(),
        [&](const ParameterCopy& candidate) { return candidate.offset == one.x.offset; });
    ASSERT_NE(copy, plan.copies.end());
    EXPECT_EQ(plan[copy->copy].offset, one.y.offset);
    EXPECT_NE(one.x.offset, one.y.offset);
    EXPECT_EQ(one.x.type, Type::bf16);
    ++copied;
  }
  EXPECT_EQ(copied, plan.copies.size());
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
  std::swap(read_after_the_update.ops()[1], read_after_the_update.ops()[2]);
  EXPECT_EQ(read_after_the_update.chosen(), 0);

  Copied read_before_the_cast;
  std::swap(read_before_the_cast.ops()[0], read_before_the_cast.ops()[1]);
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
