// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <functional>
#include <numeric>

#include "crossover/backend.h"
#include "crossover/start.h"
#include "crossover/verify.h"
#include "cuda_host.h"
#include "emulated.h"
#include "kernels/gather.cuh"
#include "owners.h"
#include "support.h"

namespace crossover::test {

// ---- How graphs run a Program: what is launched, with and without loops, and where the rows come
// from.

namespace {

using cuda_host::test::OnDevice;
using testing::HasSubstr;

constexpr CompileOptions by_step{.execution = Execution::graph};
constexpr CompileOptions at_once{.execution = Execution::graph_epoch};

/// What makes a driver refuse loops: by its version, or when it is asked.
const std::vector<std::function<void()>> loop_refusals{
    [] { cuda_host::device().driver_version = cuda_host::device().runtime_version = 12030; },
    [] { cuda_host::device().refuses_loops = true; }};

/// Calls of one function by what comes.
std::int64_t calls_in(const char* function, const std::function<void()>& what) {
  const std::int64_t before = cuda_host::calls_of(function);
  what();
  return cuda_host::calls_of(function) - before;
}

/// An order of one step, as a row of training steps has it.
Training one_batch() {
  return {fuse(training_epoch(mlp("m", {4, 3, 2}, Activation::relu),
                              {.rows = 5, .batch = 5, .optimizer = SgdOptions{}})),
          uniform_rows({4}, 5, 2)};
}

TEST(EmulatedGraphs, AreLaunchedOnceForEachStepOrOnceForAll) {
  for (const Training& training : {accumulating(), one_batch()}) {
    const auto steps = std::ssize(training.workload.order);
    for (const bool loops : {true, false}) {
      cuda_host::reset();
      cuda_host::device().refuses_loops = !loops;
      for (const auto& [options, launches] :
           {std::pair{by_step, steps}, std::pair{at_once, std::ptrdiff_t{1}}}) {
        const auto program = started(*gpu(), training, options);
        program->wait();
        for (int pass = 0; pass < 2; ++pass) {
          const std::int64_t calls = cuda_host::calls();
          EXPECT_EQ(calls_in("cudaGraphLaunch", [&] { program->enqueue(0, steps); }), launches);
          EXPECT_EQ(cuda_host::calls() - calls, launches) << "nothing but graphs";
          program->wait();
        }
      }
    }
  }
}

TEST(EmulatedGraphs, HoldOneRunOfAStepHoweverManyThereAre) {
  const auto launches_of_rows = [](std::int64_t rows) {
    const Workload workload = fuse(training_epoch(
        mlp("m", {3, 2}, Activation::relu), {.rows = rows, .batch = 2, .optimizer = SgdOptions{}}));
    const auto program = gpu()->compile(workload, at_once);
    return calls_in("kernel", [&] { static_cast<void>(gpu()->compile(workload, at_once)); });
  };
  EXPECT_EQ(launches_of_rows(20), launches_of_rows(2000));
}

TEST(EmulatedGraphs, MatchTheReferenceWhereTheDriverRefusesLoops) {
  const Training training = accumulating();
  const auto steps = std::ssize(training.workload.order);
  const Trajectory expected = reference_trajectory(training.workload, training.data, steps);
  for (const auto& refuse : loop_refusals) {
    cuda_host::reset();
    const std::int64_t with_loops = gpu()->plan(training.workload, at_once)->launches();
    refuse();
    const auto backend = gpu();
    const auto program = backend->compile(training.workload, at_once);
    EXPECT_EQ(program->facts().graph_loops, 0);
    EXPECT_EQ(program->facts().launches, with_loops - steps) << "it reads the rows in place";
    for (int epoch = 0; epoch < 2; ++epoch) {
      set_data(*program, training.workload, training.data);
      restart(*program, training.workload);
      program->enqueue(0, steps);
      EXPECT_NO_THROW(verify_state(*program, training.workload, expected));
    }
  }
}

TEST(EmulatedGraphs, SayHowManyLoopsTheyHave) {
  const auto loops_of = [](std::int64_t rows, const CompileOptions& options) {
    const Workload workload = fuse(training_epoch(
        mlp("m", {3, 2}, Activation::relu), {.rows = rows, .batch = 5, .optimizer = SgdOptions{}}));
    return gpu()->compile(workload, options)->facts().graph_loops;
  };
  EXPECT_EQ(loops_of(20, at_once), 1);
  EXPECT_EQ(loops_of(23, at_once), 2);
  EXPECT_EQ(loops_of(5, at_once), 0) << "nothing repeats";
  EXPECT_EQ(loops_of(23, by_step), std::nullopt);
  EXPECT_EQ(loops_of(23, {}), std::nullopt);
}

TEST(EmulatedGraphs, AreRefusedWhereTheyWouldBeTooLarge) {
  // Many launches in each of not so many runs.
  const Workload workload =
      fuse(training_epoch(mlp("m", std::vector<std::int64_t>(60, 2), Activation::relu),
                          {.rows = 2000, .batch = 1, .optimizer = SgdOptions{}}));
  EXPECT_NO_THROW(static_cast<void>(gpu()->compile(workload, at_once)));
  for (const auto& refuse : loop_refusals) {
    cuda_host::reset();
    refuse();
    EXPECT_THAT(
        message_of<Unsupported>([&] { static_cast<void>(gpu()->compile(workload, at_once)); }),
        testing::AllOf(HasSubstr("the whole order as one graph would have"),
                       HasSubstr("it has no loops, which need CUDA 12.4")));
    EXPECT_NO_THROW(static_cast<void>(gpu()->plan(workload, by_step)));
  }
}

/// Rows of `row` bytes, batches of three that begin at even rows, in units of so many bytes.
void expect_gathered(std::int64_t row, std::int64_t unit) {
  constexpr std::int64_t batch = 3;
  constexpr std::int64_t rows = 9;
  std::vector<std::uint8_t> data(static_cast<std::size_t>(rows * row));
  std::iota(data.begin(), data.end(), std::uint8_t{1});
  const OnDevice<std::uint8_t> from(data);
  const OnDevice<std::uint8_t> to(std::vector<std::uint8_t>(static_cast<std::size_t>(batch * row)));
  const OnDevice<std::int64_t> run({2});
  const OnDevice<std::int64_t> order({0, 0, 4, 0, 6, 0});  // OrderedRun
  cuda::GatherArguments arguments{
      .count = 1, .run = run.data, .order = reinterpret_cast<const cuda::OrderedRun*>(order.data)};
  arguments.span[0] = {.from = reinterpret_cast<const std::byte*>(from.data),
                       .to = reinterpret_cast<std::byte*>(to.data),
                       .row_bytes = row,
                       .unit = unit,
                       .count = batch * row / unit};
  cuda::gather(nullptr, arguments);
  EXPECT_EQ(to.values(),
            std::vector<std::uint8_t>(data.begin() + 6 * row, data.begin() + (6 + batch) * row))
      << row << ", " << unit;
}

TEST(EmulatedGather, BringsTheRowsOfTheRunInAnyUnit) {
  for (const std::int64_t unit : {1, 2, 4, 8, 16}) {
    expect_gathered(unit, unit);
    expect_gathered(16 * 100, unit);
  }
}

TEST(EmulatedGather, HasBlocksThatKeepApart) {
  cuda_host::device().blocks_apart = true;
  expect_gathered(16 * 1000, 16);
}

}  // namespace

}  // namespace crossover::test

namespace cuda_host::test {

// ---- Loops in emulated graphs: what the manual allows and forbids.

namespace {

using testing::ElementsAre;
using testing::HasSubstr;

void count_up(int* number, cudaGraphConditionalHandle handle, int end) {
  *number += 1;
  cudaGraphSetConditional(handle, *number < end ? 1 : 0);
}

/// A graph of one loop, whose body is what a test puts into the stream.
struct LoopGraph {
  cudaGraph_t graph = nullptr;
  cudaGraphConditionalHandle condition = 0;
  cudaGraphNode_t node = nullptr;
  cudaGraph_t body = nullptr;
  cudaGraphExec_t exec = nullptr;

  LoopGraph() {
    EXPECT_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
    EXPECT_EQ(cudaGraphConditionalHandleCreate(&condition, graph, 1, cudaGraphCondAssignDefault),
              cudaSuccess);
    EXPECT_EQ(add(condition), cudaSuccess);
  }
  LoopGraph(const LoopGraph&) = delete;
  LoopGraph& operator=(const LoopGraph&) = delete;
  ~LoopGraph() {
    if (exec != nullptr) {
      cudaGraphExecDestroy(exec);
    }
    cudaGraphDestroy(graph);
  }

  cudaError_t add(cudaGraphConditionalHandle handle) {
    cudaGraphNodeParams parameters{};
    parameters.type = cudaGraphNodeTypeConditional;
    parameters.conditional = {
        .handle = handle, .type = cudaGraphCondTypeWhile, .size = 1, .phGraph_out = nullptr};
    const cudaError_t error = cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &parameters);
    if (error == cudaSuccess) {
      body = parameters.conditional.phGraph_out[0];
    }
    return error;
  }
  void capture(cudaStream_t stream, const std::function<void()>& issue) const {
    EXPECT_EQ(cudaStreamBeginCaptureToGraph(stream, body, nullptr, nullptr, 0,
                                            cudaStreamCaptureModeThreadLocal),
              cudaSuccess);
    issue();
    cudaGraph_t recorded = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(stream, &recorded), cudaSuccess);
    EXPECT_EQ(recorded, body);
  }
  cudaError_t make_ready() { return cudaGraphInstantiate(&exec, graph); }
};

TEST(EmulatedLoop, HasNoEventsOrPageableMemoryInItsBody) {
  const Stream stream;
  const Event event(true);
  const OnDevice<int> number({0});
  int pageable = 0;
  for (const std::function<void()>& issue : std::vector<std::function<void()>>{
           [&] { cudaEventRecordWithFlags(event, stream, cudaEventRecordExternal); },
           [&] {
             cudaMemcpyAsync(&pageable, number.data, sizeof pageable, cudaMemcpyDeviceToHost,
                             stream);
           }}) {
    LoopGraph loop;
    loop.capture(stream, issue);
    EXPECT_EQ(loop.make_ready(), cudaErrorNotSupported);
  }
}

TEST(EmulatedLoop, HasOneConditionThatNoOtherHas) {
  LoopGraph loop;
  EXPECT_EQ(loop.add(loop.condition), cudaErrorInvalidValue) << "used twice";
  EXPECT_EQ(loop.add(77), cudaErrorInvalidValue) << "never made";
  cudaGraphConditionalHandle unused = 0;
  EXPECT_EQ(cudaGraphConditionalHandleCreate(&unused, loop.graph), cudaSuccess);
  EXPECT_EQ(loop.make_ready(), cudaErrorInvalidValue) << "of no node";
}

TEST(EmulatedLoop, IsReadyOnceAndNoChild) {
  const Stream stream;
  const OnDevice<int> number({0});
  LoopGraph loop;
  loop.capture(stream, [&] { run(count_up, {1, 1}, stream, number.data, loop.condition, 1); });
  ASSERT_EQ(loop.make_ready(), cudaSuccess);
  cudaGraphExec_t again = nullptr;
  EXPECT_EQ(cudaGraphInstantiate(&again, loop.graph), cudaErrorInvalidValue);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  EXPECT_EQ(cudaGraphLaunch(loop.exec, stream), cudaErrorNotSupported);
  cudaGraph_t recorded = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream, &recorded), cudaSuccess);
  cudaGraphDestroy(recorded);
  EXPECT_EQ(cudaGraphDestroy(loop.body), cudaErrorInvalidValue) << "it is the loop's";
}

TEST(EmulatedLoop, TellsOfThreadsThatSetItsConditionTogether) {
  const Stream stream;
  const OnDevice<int> number({0});
  LoopGraph loop;
  loop.capture(stream, [&] { run(count_up, {1, 2}, stream, number.data, loop.condition, 1); });
  ASSERT_EQ(loop.make_ready(), cudaSuccess);
  EXPECT_EQ(cudaGraphLaunch(loop.exec, stream), cudaSuccess);
  cudaStreamSynchronize(stream);
  EXPECT_THAT(take_violations(), ElementsAre(HasSubstr("several threads")));
}

TEST(EmulatedLoop, TellsOfAConditionThatIsNone) {
  const Stream stream;
  const OnDevice<int> number({0});
  run(count_up, {1, 1}, stream, number.data, cudaGraphConditionalHandle{5}, 1);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorLaunchFailure);
  EXPECT_THAT(take_violations(), ElementsAre(HasSubstr("condition 5, which is none")));
}

TEST(EmulatedLoop, ThatDoesNotEndIsFound) {
  const Stream stream;
  const OnDevice<int> number({0});
  LoopGraph loop;
  loop.capture(stream, [&] { run(digit, {1, 1}, stream, number.data, 0); });
  ASSERT_EQ(loop.make_ready(), cudaSuccess);
  EXPECT_EQ(cudaGraphLaunch(loop.exec, stream), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorLaunchTimeout);
  EXPECT_THAT(take_violations(), ElementsAre(HasSubstr("does not end")));
}

}  // namespace

}  // namespace cuda_host::test
