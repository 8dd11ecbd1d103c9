// SPDX-License-Identifier: Apache-2.0
// How the GPU runs an order of steps, decided without it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <variant>

#include "../src/cuda/plan/run_mode.h"
#include "crossover/backend.h"
#include "crossover/catalogue.h"
#include "crossover/networks.h"
#include "cuda_plans.h"

namespace crossover::test {

// ---- What CompileOptions mean for a run on the GPU.

namespace {

using cuda::choose_run_mode;

constexpr Placement streamed[] = {Placement::pageable, Placement::pinned, Placement::pinned_async};

TEST(CudaRunMode, MakesOneGraphOfAnOrderOnlyWhereNothingComesBetween) {
  const auto execution = [](Placement placement, bool loss_every_step) {
    return choose_run_mode({.execution = Execution::graph_epoch,
                            .placement = placement,
                            .loss_every_step = loss_every_step})
        .execution;
  };
  EXPECT_EQ(execution(Placement::resident, false), Execution::graph_epoch);
  EXPECT_EQ(execution(Placement::resident, true), Execution::graph);
  for (const Placement placement : streamed) {
    EXPECT_EQ(execution(placement, false), Execution::graph);
  }
}

TEST(CudaRunMode, IsNoneOfTheCpusExecutions) {
  EXPECT_THROW(choose_run_mode({.execution = Execution::fused}), Unsupported);
  EXPECT_THROW(choose_run_mode({.execution = Execution::automatic}), Unsupported);
}

}  // namespace

// ---- Orders of runs as loops. Needs no CUDA.

namespace {

using cuda::find_loops;
using cuda::OrderLoop;

/// An order whose steps are letters.
std::vector<crossover::Run> order_of(const std::string& steps) {
  std::vector<crossover::Run> order;
  for (const char step : steps) {
    order.push_back({.step = step - 'a', .first_row = static_cast<std::int64_t>(order.size())});
  }
  return order;
}

/// "3(ab) 1(c)": how often what.
std::string loops_of(const std::string& steps) {
  std::string words;
  std::int64_t end = 0;
  for (const OrderLoop& loop : find_loops(order_of(steps))) {
    EXPECT_EQ(loop.first, end);
    end = loop.end();
    words +=
        (words.empty() ? "" : " ") + std::to_string(loop.times) + "(" +
        steps.substr(static_cast<std::size_t>(loop.first), static_cast<std::size_t>(loop.cycle)) +
        ")";
  }
  EXPECT_EQ(end, static_cast<std::int64_t>(steps.size()));
  return words;
}

TEST(CudaOrderLoops, CoverTheOrder) {
  EXPECT_EQ(loops_of(""), "");
  EXPECT_EQ(loops_of("a"), "1(a)");
  EXPECT_EQ(loops_of("ab"), "1(ab)");
  EXPECT_EQ(loops_of("aaaa"), "4(a)");
  EXPECT_EQ(loops_of("aaaab"), "4(a) 1(b)");
  EXPECT_EQ(loops_of("ababab"), "3(ab)");
  EXPECT_EQ(loops_of("abababc"), "3(ab) 1(c)");
  EXPECT_EQ(loops_of("aabaabaabac"), "3(aab) 1(ac)");
  EXPECT_EQ(loops_of("abcdd"), "1(abc) 2(d)");
}

TEST(CudaOrderLoops, OfALongEpochAreFewAndFoundFast) {
  const std::string long_epoch(100'000, 'a');
  EXPECT_EQ(find_loops(order_of(long_epoch + "b")).size(), 2);
  std::string updates;  // gradients of a hundred batches added up: beyond the longest cycle
  for (int update = 0; update < 10; ++update) {
    updates += std::string(99, 'a') + "b";
  }
  EXPECT_EQ(find_loops(order_of(updates)).size(), 20);
}

}  // namespace

// ---- What of a graph's launches may run side by side, which forms graphs may have, and which of
// them is taken. Needs no CUDA.

namespace {

using cuda::LaunchPlan;
using cuda::SideBySide;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr GraphForm flat_form{.loops = false, .streams = 1};
constexpr GraphForm forked_form{.loops = false, .streams = 2};
constexpr GraphForm looped_form{.loops = true, .streams = 1};
constexpr GraphForm largest_of_all{.loops = true, .streams = 2};

LaunchPlan graph_plan(const Workload& workload, Execution execution, const GraphForm& form) {
  return cuda::make_plan(workload, {.execution = execution, .graph_form = form}, everything);
}

Workload in_batches_of_five(const Model& model, std::int64_t rows = 10) {
  return fuse(training_epoch(model, {.rows = rows, .batch = 5, .optimizer = SgdOptions{}}));
}

Model three_layers() { return mlp("m", {4, 8, 6, 2}, Activation::relu); }

/// Launches in both parts of each pair.
std::vector<std::pair<std::size_t, std::size_t>> sizes_side_by_side(const cuda::StepPlan& step) {
  std::vector<std::pair<std::size_t, std::size_t>> all;
  for (const SideBySide& parts : step.side_by_side) {
    all.emplace_back(parts.second - parts.first, parts.end - parts.second);
  }
  return all;
}

TEST(CudaGraphForms, HaveTheTwoGradientsOfALayerSideBySide) {
  const Workload workload = in_batches_of_five(three_layers());
  const LaunchPlan plan = graph_plan(workload, Execution::graph, forked_form);
  // The first layer has no gradient of its input.
  EXPECT_THAT(sizes_side_by_side(plan.steps[0]), ElementsAre(std::pair{1, 1}, std::pair{1, 1}));
  const auto product = [&](std::size_t at) {
    return std::get<cuda::ProductLaunch>(plan.steps[0].launches[at]);
  };
  for (const SideBySide& parts : plan.steps[0].side_by_side) {
    EXPECT_FALSE(product(parts.first).form.transpose_b) << "dx";
    EXPECT_TRUE(product(parts.second).form.transpose_b) << "dw";
    EXPECT_EQ(product(parts.first).b.offset, product(parts.second).b.offset) << "both read dy";
  }
  const LaunchPlan one_stream = graph_plan(workload, Execution::graph, flat_form);
  EXPECT_FALSE(one_stream.forks());
  EXPECT_EQ(plan.bytes, one_stream.bytes + plan.workspace_bytes) << "each stream has a workspace";
  EXPECT_FALSE(graph_plan(workload, Execution::eager, forked_form).forks()) << "as frameworks do";
}

TEST(CudaGraphForms, KeepWeightsThatAreUpdatedInTheirProductBehindWhatReadsThem) {
  Workload workload = fuse_update(in_batches_of_five(three_layers()), 0);
  EXPECT_FALSE(graph_plan(workload, Execution::graph, forked_form).forks());
  workload = fuse_update(in_batches_of_five(three_layers()), 40);
  EXPECT_THAT(sizes_side_by_side(graph_plan(workload, Execution::graph, forked_form).steps[0]),
              ElementsAre(std::pair{1, 1}))
      << "the last layer's 12 weights are not updated so";
}

TEST(CudaGraphForms, HaveConvolutionsAndSequencesSideBySideToo) {
  const Workload images = in_batches_of_five(small_alexnet());
  EXPECT_GE(graph_plan(images, Execution::graph, forked_form).steps[0].side_by_side.size(), 2);
  const Workload sequences = in_batches_of_five(small_language_model());
  // An LSTM: one product for its input, three launches for its parameters.
  EXPECT_THAT(sizes_side_by_side(graph_plan(sequences, Execution::graph, forked_form).steps[0]),
              testing::Contains(std::pair<std::size_t, std::size_t>{1, 3}));
}

/// A Cast that reads what one of two parts writes stands behind both.
TEST(CudaGraphForms, LetNothingJoinAPartFromOutside) {
  const Workload images =
      make_planned_gpu()->optimize(training_epoch(small_alexnet(), {.rows = 20,
                                                                    .batch = 5,
                                                                    .optimizer = SgdOptions{},
                                                                    .accumulate = 2,
                                                                    .precision = Precision::bf16}));
  const LaunchPlan plan = cuda::make_plan(
      images,
      {.precision = Precision::bf16, .execution = Execution::graph, .graph_form = forked_form},
      everything);
  std::int64_t behind = 0;
  for (const cuda::StepPlan& step : plan.steps) {
    const auto is_cast = [&](std::size_t i) {
      return i < step.launches.size() && std::holds_alternative<cuda::CastLaunch>(step.launches[i]);
    };
    for (const SideBySide& parts : step.side_by_side) {
      EXPECT_FALSE(is_cast(parts.end - 1));
      behind += is_cast(parts.end) ? 1 : 0;
    }
  }
  EXPECT_GT(behind, 0);
}

TEST(CudaGraphForms, AreThoseThatThePlanLeavesOpen) {
  const auto forms = [](const Workload& workload, Execution execution) {
    return cuda::graph_forms(workload, graph_plan(workload, execution, cuda::largest_form));
  };
  const Workload epoch = in_batches_of_five(three_layers(), 20);
  EXPECT_THAT(forms(epoch, Execution::graph_epoch),
              ElementsAre(flat_form, forked_form, looped_form, largest_of_all));
  EXPECT_THAT(forms(epoch, Execution::graph), ElementsAre(flat_form, forked_form));
  EXPECT_THAT(forms(in_batches_of_five(three_layers(), 5), Execution::graph_epoch),
              ElementsAre(flat_form, forked_form))
      << "nothing repeats";
  EXPECT_THAT(
      forms(in_batches_of_five(mlp("m", {4, 2}, Activation::relu), 20), Execution::graph_epoch),
      ElementsAre(flat_form, looped_form))
      << "nothing runs beside its only gradient";
  EXPECT_THAT(forms(in_batches_of_five(three_layers(), 20'000), Execution::graph_epoch),
              ElementsAre(looped_form, largest_of_all))
      << "seconds to make without loops";
}

TEST(CudaGraphForms, AreChosenByTime) {
  const std::vector<GraphForm> all{flat_form, forked_form, looped_form, largest_of_all};
  EXPECT_EQ(cuda::fastest_of(all, [](const GraphForm& /*form*/) { return true; }), largest_of_all);
  EXPECT_EQ(
      cuda::fastest_of(
          all, [](const GraphForm& form) { return form == flat_form || form == forked_form; }),
      forked_form)
      << "the last that beats the one before";
  EXPECT_EQ(cuda::fastest_of({looped_form},
                             [](const GraphForm& /*form*/) -> bool {
                               throw std::logic_error("a single one is not timed");
                             }),
            looped_form);
}

TEST(CudaGraphForms, ThatDoNotWorkAreNotTaken) {
  const std::vector<GraphForm> all{flat_form, forked_form, looped_form, largest_of_all};
  const auto only = [](const GraphForm& works) {
    return [works](const GraphForm& form) {
      if (form.streams == 2 && form != works) {
        throw OutOfMemory("no room for another workspace");
      }
      if (form != works) {
        throw Unsupported("no such graph");
      }
      return true;
    };
  };
  EXPECT_EQ(cuda::fastest_of(all, only(looped_form)), looped_form);
  EXPECT_EQ(cuda::fastest_of(all, only(largest_of_all)), largest_of_all);
  EXPECT_EQ(cuda::fastest_of(all, only({.loops = true, .streams = 3})), flat_form);
  EXPECT_THROW(static_cast<void>(cuda::fastest_of(
                   all, [](const GraphForm& /*form*/) -> bool { throw DeviceFailed("gone"); })),
               DeviceFailed);
}

}  // namespace

}  // namespace crossover::test
