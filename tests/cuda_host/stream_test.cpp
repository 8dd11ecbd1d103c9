// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <set>

#include "owners.h"

namespace cuda_host::test {
namespace {

using testing::ElementsAre;

TEST(EmulatedStream, RunsInOrder) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    reset(seed);
    const OnDevice<int> number({0});
    const Stream stream;
    for (int i = 1; i <= 5; ++i) {
      ASSERT_EQ(run(digit, {1, 1}, stream, number.data, i), cudaSuccess);
    }
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_THAT(number.values(), ElementsAre(12345));
  }
}

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

TEST(EmulatedStream, OrderBetweenStreamsIsLeftToChance) {
  EXPECT_THAT(outcomes(false), ElementsAre(12, 21));
}

TEST(EmulatedStream, EventsOrder) { EXPECT_THAT(outcomes(true), ElementsAre(12)); }

TEST(EmulatedStream, BlockingStreamsAreInOrderWithTheDefaultOne) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    reset(seed);
    const OnDevice<int> number({0});
    const Stream stream(cudaStreamDefault);
    run(digit, {1, 1}, stream, number.data, 1);
    run(digit, {1, 1}, nullptr, number.data, 2);
    run(digit, {1, 1}, stream, number.data, 3);
    cudaDeviceSynchronize();
    EXPECT_THAT(number.values(), ElementsAre(123));
  }
}

TEST(EmulatedStream, TakesItsTime) {
  reset(1, Order::lazy);
  const OnDevice<int> number({0});
  const Stream stream;
  const Event start(cudaEventDefault);
  const Event end(cudaEventDefault);
  cudaEventRecord(start, stream);
  run(digit, {1, 1}, stream, number.data, 1);
  cudaEventRecord(end, stream);
  EXPECT_EQ(cudaEventQuery(end), cudaErrorNotReady);
  float milliseconds = 0;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, start, end), cudaErrorNotReady);
  EXPECT_EQ(cudaEventSynchronize(end), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(end), cudaSuccess);
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

}  // namespace
}  // namespace cuda_host::test
