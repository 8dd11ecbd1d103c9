// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <set>

#include "owners.h"

namespace cuda_host::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Ends the capture, expects a graph, and makes it executable.
cudaGraphExec_t finished(cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  cudaGraphExec_t exec = nullptr;
  EXPECT_EQ(cudaGraphInstantiate(&exec, graph), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  return exec;
}

cudaError_t end(cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  const cudaError_t error = cudaStreamEndCapture(stream, &graph);
  EXPECT_EQ(graph, nullptr);
  return error;
}

TEST(EmulatedCapture, RecordsAndReplays) {
  const OnDevice<int> number({0});
  const Stream stream;
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  run(digit, {1, 1}, stream, number.data, 1);
  run(digit, {1, 1}, stream, number.data, 2);
  const cudaGraphExec_t exec = finished(stream);
  EXPECT_THAT(number.values(), ElementsAre(0));
  EXPECT_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
  EXPECT_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_THAT(number.values(), ElementsAre(1212));
  cudaGraphExecDestroy(exec);
}

/// A graph of two branches, in many runs.
std::set<int> captured_outcomes(bool with_event) {
  std::set<int> seen;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    reset(seed);
    const OnDevice<int> number({0});
    const Stream stream;
    const Stream other;
    const Event fork;
    const Event middle;
    const Event join;
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    cudaEventRecord(fork, stream);
    cudaStreamWaitEvent(other, fork);
    run(digit, {1, 1}, other, number.data, 1);
    if (with_event) {
      cudaEventRecord(middle, other);
      cudaStreamWaitEvent(stream, middle);
    }
    run(digit, {1, 1}, stream, number.data, 2);
    cudaEventRecord(join, other);
    cudaStreamWaitEvent(stream, join);
    const cudaGraphExec_t exec = finished(stream);
    cudaGraphLaunch(exec, stream);
    cudaStreamSynchronize(stream);
    seen.insert(number.values()[0]);
    cudaGraphExecDestroy(exec);
  }
  return seen;
}

TEST(EmulatedCapture, BranchesAreLeftToChance) {
  EXPECT_THAT(captured_outcomes(false), ElementsAre(12, 21));
}

TEST(EmulatedCapture, EventsOrderBranches) {
  EXPECT_THAT(captured_outcomes(true), ElementsAre(12));
}

TEST(EmulatedCapture, ForbidsWhatCudaForbids) {
  const Stream stream;
  const Event before;
  cudaEventRecord(before, stream);
  const OnDevice<int> number({0});
  int value = 0;
  const std::vector<std::pair<std::function<cudaError_t()>, cudaError_t>> calls{
      {[&] { return cudaStreamSynchronize(stream); }, cudaErrorStreamCaptureUnsupported},
      {[&] { return cudaDeviceSynchronize(); }, cudaErrorStreamCaptureUnsupported},
      {[&] {
         void* memory = nullptr;
         return cudaMalloc(&memory, 4);
       },
       cudaErrorStreamCaptureUnsupported},
      {[&] { return cudaMemcpy(&value, number.data, 4, cudaMemcpyDeviceToHost); },
       cudaErrorStreamCaptureUnsupported},
      {[&] { return cudaStreamWaitEvent(stream, before); }, cudaErrorStreamCaptureIsolation}};
  for (const auto& [call, error] : calls) {
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
    EXPECT_EQ(call(), error);
    EXPECT_EQ(end(stream), cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  }
}

TEST(EmulatedCapture, MustBeJoinedAndEndWhereItBegan) {
  const Stream stream;
  const Stream other;
  const Event fork;
  const OnDevice<int> number({0});
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  cudaEventRecord(fork, stream);
  cudaStreamWaitEvent(other, fork);
  run(digit, {1, 1}, other, number.data, 1);
  EXPECT_EQ(end(stream), cudaErrorStreamCaptureUnjoined);
  EXPECT_EQ(cudaEventSynchronize(fork), cudaErrorCapturedEvent);

  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  cudaEventRecord(fork, stream);
  cudaStreamWaitEvent(other, fork);
  EXPECT_EQ(end(other), cudaErrorStreamCaptureUnmatched);
  EXPECT_EQ(end(stream), cudaErrorStreamCaptureInvalidated);
}

TEST(EmulatedCapture, GraphsUseNoFreedMemory) {
  const Stream stream;
  cudaGraphExec_t exec = nullptr;
  {
    const OnDevice<int> number({0});
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
    run(digit, {1, 1}, stream, number.data, 1);
    exec = finished(stream);
  }
  EXPECT_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
  EXPECT_THAT(take_violations(), ElementsAre(HasSubstr("has been freed")));
  cudaGraphExecDestroy(exec);
}

}  // namespace
}  // namespace cuda_host::test
