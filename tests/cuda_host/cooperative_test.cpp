// SPDX-License-Identifier: Apache-2.0
// Blocks of a cooperative launch wait for each other, and must all run at once for that.
#include <gmock/gmock.h>

#include "owners.h"

namespace cuda_host::test {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

void all_blocks(std::source_location where = std::source_location::current()) {
  grid_barrier(where);
}

/// Each block says that it is there, and counts the others behind the barrier.
__global__ void count_blocks(int* there, int* counted) {
  if (threadIdx.x == 0) {
    there[blockIdx.x] = 1;
  }
  all_blocks();
  if (threadIdx.x == 0) {
    for (unsigned b = 0; b < gridDim.x; ++b) {
      counted[blockIdx.x] += there[b];
    }
  }
}

Size cooperative(unsigned blocks) { return {.blocks = blocks, .threads = 64, .cooperative = true}; }

TEST(EmulatedCooperativeLaunch, WaitsForAllBlocks) {
  const OnDevice<int> there(std::vector<int>(4));
  const OnDevice<int> counted(std::vector<int>(4));
  ASSERT_EQ(run(count_blocks, cooperative(4), nullptr, there.data, counted.data), cudaSuccess);
  EXPECT_THAT(counted.values(), Each(4));
}

/// A block that is not resident would never come to the barrier.
TEST(EmulatedCooperativeLaunch, OfMoreBlocksThanRunAtOnceIsRefused) {
  const OnDevice<int> there(std::vector<int>(8));
  const OnDevice<int> counted(std::vector<int>(8));
  const auto launched = [&](unsigned blocks) {
    return run(count_blocks, cooperative(blocks), nullptr, there.data, counted.data);
  };
  device().multiprocessors = 4;
  EXPECT_EQ(launched(5), cudaErrorCooperativeLaunchTooLarge);
  EXPECT_EQ(cudaGetLastError(), cudaErrorCooperativeLaunchTooLarge);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess) << "the context goes on";
  EXPECT_THAT(there.values(), Each(0)) << "nothing ran";
  EXPECT_EQ(launched(4), cudaSuccess);
  device().multiprocessors = 8;
  EXPECT_EQ(launched(8), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

TEST(EmulatedCooperativeLaunch, AloneHasBarriersOfAllBlocks) {
  const OnDevice<int> memory(std::vector<int>(8));
  device().multiprocessors = 4;
  EXPECT_EQ(run(count_blocks, {8, 64}, nullptr, memory.data, memory.data), cudaSuccess)
      << "others may have as many as they like";
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
  EXPECT_THAT(take_violations(), ElementsAre(HasSubstr("is in no cooperative launch")));
}

__global__ void own_barrier(int* /*unused*/) { __syncthreads(); }
__global__ void one_block_stays_away(int* /*unused*/) {
  if (blockIdx.x > 0) {
    all_blocks();
  }
}
__global__ void two_barriers_of_all(int* /*unused*/) {
  if (blockIdx.x > 0) {
    all_blocks();
  } else {
    all_blocks();
  }
}

class EmulatedCooperativeFault
    : public testing::TestWithParam<std::pair<void (*)(int*), const char*>> {};

TEST_P(EmulatedCooperativeFault, IsFound) {
  const auto [kernel, sentence] = GetParam();
  const OnDevice<int> memory({0});
  EXPECT_EQ(run(kernel, cooperative(2), nullptr, memory.data), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
  EXPECT_THAT(take_violations(), ElementsAre(HasSubstr(sentence)));
}

INSTANTIATE_TEST_SUITE_P(Rules, EmulatedCooperativeFault,
                         testing::Values(std::pair{&own_barrier, "has only those of all blocks"},
                                         std::pair{&one_block_stays_away,
                                                   "not reached by all threads of the grid: 64"},
                                         std::pair{&two_barriers_of_all, "different barriers"}));

}  // namespace
}  // namespace cuda_host::test
