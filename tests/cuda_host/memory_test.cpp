// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "owners.h"

namespace cuda_host::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

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
  ASSERT_EQ(cudaMallocHost(&pinned, sizeof(int)), cudaSuccess);
  *pinned = 1;
  ASSERT_EQ(cudaFreeHost(pinned), cudaSuccess);
  EXPECT_DEATH(*pinned = 1, "");
}

TEST(EmulatedMemory, IsFullOfGarbageAtFirst) {
  float* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, sizeof(float)), cudaSuccess);
  float value = 0;
  ASSERT_EQ(cudaMemcpy(&value, memory, sizeof value, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_TRUE(std::isnan(value));
  cudaFree(memory);
}

TEST(EmulatedMemory, EndsSomewhere) {
  device().bytes = 1000;
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, 1001), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&memory, 600), cudaSuccess);
  std::size_t free = 0;
  std::size_t total = 0;
  EXPECT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
  EXPECT_EQ(free, 400);
  EXPECT_EQ(total, 1000);
  cudaFree(memory);
}

TEST(EmulatedMemory, CopiesKeepToTheirBlocks) {
  const OnDevice<int> memory({1, 2, 3});
  std::vector<int> four(4);
  EXPECT_EQ(cudaMemcpy(four.data(), memory.data, 16, cudaMemcpyDeviceToHost),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(four.data(), memory.data, 4, cudaMemcpyHostToDevice),
            cudaErrorInvalidMemcpyDirection);
  EXPECT_THAT(take_violations(), ElementsAre(HasSubstr("over the end"), HasSubstr("direction")));
}

TEST(EmulatedMemory, PageableSourcesAreStagedAtTheCall) {
  reset(1, Order::lazy);
  const Stream stream;
  const OnDevice<int> memory({0});
  int source = 1;
  ASSERT_EQ(cudaMemcpyAsync(memory.data, &source, 4, cudaMemcpyHostToDevice, stream), cudaSuccess);
  source = 2;
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_THAT(memory.values(), ElementsAre(1));
}

TEST(EmulatedMemory, PinnedSourcesAreReadLater) {
  reset(1, Order::lazy);
  const Stream stream;
  const OnDevice<int> memory({0});
  const Pinned<int> source(1);
  *source.data = 1;
  ASSERT_EQ(cudaMemcpyAsync(memory.data, source.data, 4, cudaMemcpyHostToDevice, stream),
            cudaSuccess);
  *source.data = 2;  // too early
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_THAT(memory.values(), ElementsAre(2));
}

TEST(EmulatedMemory, MustNotBeFreedInFlight) {
  reset(1, Order::lazy);
  const Stream stream;
  const OnDevice<int> memory({0});
  int* source = nullptr;
  ASSERT_EQ(cudaMallocHost(&source, 4), cudaSuccess);
  *source = 1;
  ASSERT_EQ(cudaMemcpyAsync(memory.data, source, 4, cudaMemcpyHostToDevice, stream), cudaSuccess);
  ASSERT_EQ(cudaFreeHost(source), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
  EXPECT_THAT(take_violations(),
              ElementsAre(HasSubstr("copy of 4 bytes in the queue uses"), HasSubstr("freed")));
}

TEST(EmulatedMemory, SynchronousCopiesMayStillBeUnderWay) {
  reset(1, Order::lazy);
  const Stream stream;
  const OnDevice<int> memory({1});
  const OnDevice<int> copy({0});
  const int source = 2;
  ASSERT_EQ(cudaMemcpy(memory.data, &source, 4, cudaMemcpyHostToDevice), cudaSuccess);
  // This stream does not wait for the default one.
  ASSERT_EQ(cudaMemcpyAsync(copy.data, memory.data, 4, cudaMemcpyDeviceToDevice, stream),
            cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_THAT(copy.values(), ElementsAre(1));
  EXPECT_THAT(memory.values(), ElementsAre(2));
}

}  // namespace
}  // namespace cuda_host::test
