// SPDX-License-Identifier: Apache-2.0
// Loops in emulated graphs: what the manual allows and forbids.
#include <gmock/gmock.h>

#include <functional>

#include "owners.h"

namespace cuda_host::test {
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

  explicit LoopGraph(unsigned initial = 1) {
    EXPECT_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
    EXPECT_EQ(
        cudaGraphConditionalHandleCreate(&condition, graph, initial, cudaGraphCondAssignDefault),
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

  cudaError_t add(cudaGraphConditionalHandle handle, cudaGraphNode_t after = nullptr) {
    cudaGraphNodeParams parameters{};
    parameters.type = cudaGraphNodeTypeConditional;
    parameters.conditional = {
        .handle = handle, .type = cudaGraphCondTypeWhile, .size = 1, .phGraph_out = nullptr};
    const cudaError_t error =
        cudaGraphAddNode(&node, graph, &after, nullptr, after == nullptr ? 0 : 1, &parameters);
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

TEST(EmulatedLoop, RepeatsItsBodyUntilAKernelEndsIt) {
  const Stream stream;
  const OnDevice<int> turns({0});
  const OnDevice<int> digits({0});
  LoopGraph loop;
  loop.capture(stream, [&] {
    run(digit, {1, 1}, stream, digits.data, 1);
    run(count_up, {1, 1}, stream, turns.data, loop.condition, 3);
    run(digit, {1, 1}, stream, digits.data, 2);
  });
  ASSERT_EQ(loop.make_ready(), cudaSuccess);
  for (int launch = 0; launch < 2; ++launch) {  // the second's first turn is its last
    EXPECT_EQ(cudaGraphLaunch(loop.exec, stream), cudaSuccess);
  }
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_THAT(turns.values(), ElementsAre(4));
  EXPECT_THAT(digits.values(), ElementsAre(12121212));
}

TEST(EmulatedLoop, IsNotEnteredWhereItsConditionIsZero) {
  const Stream stream;
  const OnDevice<int> number({0});
  LoopGraph loop(0);
  loop.capture(stream, [&] { run(digit, {1, 1}, stream, number.data, 1); });
  ASSERT_EQ(loop.make_ready(), cudaSuccess);
  EXPECT_EQ(cudaGraphLaunch(loop.exec, stream), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_THAT(number.values(), ElementsAre(0));
}

TEST(EmulatedLoop, FollowsTheOneItDependsOn) {
  const Stream stream;
  const OnDevice<int> first({0});
  const OnDevice<int> second({0});
  const OnDevice<int> digits({0});
  LoopGraph loop;
  const auto body = [&](int value, int* turns) {
    loop.capture(stream, [&] {
      run(digit, {1, 1}, stream, digits.data, value);
      run(count_up, {1, 1}, stream, turns, loop.condition, 2);
    });
  };
  body(1, first.data);
  EXPECT_EQ(
      cudaGraphConditionalHandleCreate(&loop.condition, loop.graph, 1, cudaGraphCondAssignDefault),
      cudaSuccess);
  ASSERT_EQ(loop.add(loop.condition, loop.node), cudaSuccess);
  body(2, second.data);
  ASSERT_EQ(loop.make_ready(), cudaSuccess);
  EXPECT_EQ(cudaGraphLaunch(loop.exec, stream), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_THAT(digits.values(), ElementsAre(1122));
}

TEST(EmulatedLoop, HasNoEventsOrPageableMemoryInItsBody) {
  const Stream stream;
  const Event event(cudaEventDefault);
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
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  EXPECT_EQ(cudaGraphLaunch(loop.exec, stream), cudaErrorNotSupported);
  cudaGraph_t recorded = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream, &recorded), cudaSuccess);
  cudaGraphDestroy(recorded);
  EXPECT_EQ(cudaGraphDestroy(loop.body), cudaErrorInvalidValue) << "it is the loop's";
}

TEST(EmulatedLoop, OfAnOlderDriverIsRefused) {
  device().driver_version = 12030;
  device().runtime_version = 12030;
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
  cudaGraphConditionalHandle condition = 0;
  EXPECT_EQ(cudaGraphConditionalHandleCreate(&condition, graph), cudaErrorCallRequiresNewerDriver);
  cudaGraphDestroy(graph);
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
