// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <set>

#include "owners.h"

namespace cuda_host::test {

namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// ---- streams

/// What two streams make of a number in many runs, with an event between them or without.
std::set<int> outcomes(bool with_event) {
  std::set<int> seen;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    reset(seed);
    const OnDevice<int> number({0});
    const Stream first;
    const Stream second;
    const Event event;
    run(digit, {1, 1}, first, number.data, 1);
    if (with_event) {
      cudaEventRecord(event, first);
      cudaStreamWaitEvent(second, event, 0);
    }
    run(digit, {1, 1}, second, number.data, 2);
    cudaStreamSynchronize(second);
    cudaStreamSynchronize(first);
    seen.insert(number.values()[0]);
  }
  return seen;
}

TEST(EmulatedStream, EventsAloneOrderStreams) {
  EXPECT_THAT(outcomes(false), ElementsAre(12, 21));
  EXPECT_THAT(outcomes(true), ElementsAre(12));
}

TEST(EmulatedStream, TakesItsTime) {
  reset(1, Order::lazy);
  const OnDevice<int> number({0});
  const Stream stream;
  const Event start(true);
  const Event end(true);
  cudaEventRecord(start, stream);
  run(digit, {1, 1}, stream, number.data, 1);
  cudaEventRecord(end, stream);
  float milliseconds = 0;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, start, end), cudaErrorNotReady);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, start, end), cudaSuccess);
  EXPECT_GT(milliseconds, 0);
  const Event untimed;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, untimed, end), cudaErrorInvalidResourceHandle);
}

TEST(EmulatedStream, IsGoneWhenDestroyed) {
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidResourceHandle);
}

// ---- memory

TEST(EmulatedMemory, IsOutOfTheHostsReach) {
  const OnDevice<int> memory({1, 2, 3});
  EXPECT_DEATH(std::cerr << memory.data[0], "");
  EXPECT_THAT(memory.values(), ElementsAre(1, 2, 3));
  EXPECT_DEATH(memory.data[0] = 1, "");
}

TEST(EmulatedMemory, IsGoneWhenFreed) {
  int* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, sizeof(int)), cudaSuccess);
  ASSERT_EQ(cudaFree(memory), cudaSuccess);
  EXPECT_EQ(cudaFree(memory), cudaErrorInvalidValue);
  EXPECT_THAT(take_violations(), ElementsAre(HasSubstr("where no block begins")));
  int* pinned = nullptr;
  ASSERT_EQ(cudaHostAlloc(&pinned, sizeof(int), cudaHostAllocDefault), cudaSuccess);
  *pinned = 1;
  ASSERT_EQ(cudaFreeHost(pinned), cudaSuccess);
  EXPECT_DEATH(*pinned = 1, "");
}

TEST(EmulatedMemory, IsFullOfGarbageAtFirst) {
  float* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, sizeof(float)), cudaSuccess);
  float value = 0;
  ASSERT_EQ(cudaMemcpyAsync(&value, memory, sizeof value, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_TRUE(std::isnan(value));
  cudaFree(memory);
}

TEST(EmulatedMemory, CopiesKeepToTheirBlocks) {
  const OnDevice<int> memory({1, 2, 3});
  std::vector<int> four(4);
  EXPECT_EQ(cudaMemcpyAsync(four.data(), memory.data, 16, cudaMemcpyDeviceToHost),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyAsync(four.data(), memory.data, 4, cudaMemcpyHostToDevice),
            cudaErrorInvalidMemcpyDirection);
  EXPECT_THAT(take_violations(), ElementsAre(HasSubstr("over the end"), HasSubstr("direction")));
}

TEST(EmulatedMemory, PageableSourcesAreStagedAtTheCallAndPinnedOnesReadLater) {
  reset(1, Order::lazy);
  const Stream stream;
  const OnDevice<int> memory({0, 0});
  int pageable = 1;
  const Pinned<int> pinned(1);
  *pinned.data = 1;
  ASSERT_EQ(cudaMemcpyAsync(memory.data, &pageable, 4, cudaMemcpyHostToDevice, stream),
            cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(memory.data + 1, pinned.data, 4, cudaMemcpyHostToDevice, stream),
            cudaSuccess);
  pageable = 2;
  *pinned.data = 2;  // too early
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_THAT(memory.values(), ElementsAre(1, 2));
}

TEST(EmulatedMemory, MustNotBeFreedInFlight) {
  reset(1, Order::lazy);
  const Stream stream;
  const OnDevice<int> memory({0});
  int* source = nullptr;
  ASSERT_EQ(cudaHostAlloc(&source, 4, cudaHostAllocDefault), cudaSuccess);
  *source = 1;
  ASSERT_EQ(cudaMemcpyAsync(memory.data, source, 4, cudaMemcpyHostToDevice, stream), cudaSuccess);
  ASSERT_EQ(cudaFreeHost(source), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
  EXPECT_THAT(take_violations(),
              ElementsAre(HasSubstr("copy of 4 bytes in the queue uses"), HasSubstr("freed")));
}

// ---- capture

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
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
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

TEST(EmulatedCapture, EventsAloneOrderBranches) {
  EXPECT_THAT(captured_outcomes(false), ElementsAre(12, 21));
  EXPECT_THAT(captured_outcomes(true), ElementsAre(12));
}

TEST(EmulatedCapture, ForbidsWhatCudaForbids) {
  const Stream stream;
  const Event before;
  cudaEventRecord(before, stream);
  const std::vector<std::pair<std::function<cudaError_t()>, cudaError_t>> calls{
      {[&] { return cudaStreamSynchronize(stream); }, cudaErrorStreamCaptureUnsupported},
      {[&] {
         void* memory = nullptr;
         return cudaMalloc(&memory, 4);
       },
       cudaErrorStreamCaptureUnsupported},
      {[&] { return cudaStreamWaitEvent(stream, before); }, cudaErrorStreamCaptureIsolation}};
  for (const auto& [call, error] : calls) {
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
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
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  cudaEventRecord(fork, stream);
  cudaStreamWaitEvent(other, fork);
  run(digit, {1, 1}, other, number.data, 1);
  EXPECT_EQ(end(stream), cudaErrorStreamCaptureUnjoined);

  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
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
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
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
