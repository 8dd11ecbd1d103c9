// SPDX-License-Identifier: Apache-2.0
#include <cuda_pipeline_primitives.h>
#include <gmock/gmock.h>

#include <numeric>

#include "owners.h"

namespace cuda_host::test {

namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

// ---- Blocks of a cooperative launch wait for each other, and must all run at once for that.

void all_blocks(std::source_location where = std::source_location::current()) {
  grid_barrier(where);
}

__global__ void say_there(int* there) {
  there[blockIdx.x] = 1;
  all_blocks();
}

Size cooperative(unsigned blocks) { return {.blocks = blocks, .threads = 64, .cooperative = true}; }

/// A block that is not resident would never come to the barrier.
TEST(EmulatedCooperativeLaunch, OfMoreBlocksThanRunAtOnceIsRefused) {
  const OnDevice<int> there(std::vector<int>(8));
  const auto launched = [&](unsigned blocks) {
    return run(say_there, cooperative(blocks), nullptr, there.data);
  };
  device().multiprocessors = 4;
  EXPECT_EQ(launched(5), cudaErrorCooperativeLaunchTooLarge);
  EXPECT_EQ(cudaGetLastError(), cudaErrorCooperativeLaunchTooLarge);
  EXPECT_EQ(synchronize(), cudaSuccess) << "the context goes on";
  EXPECT_THAT(there.values(), Each(0)) << "nothing ran";
  EXPECT_EQ(launched(4), cudaSuccess);
  device().multiprocessors = 8;
  EXPECT_EQ(launched(8), cudaSuccess);
  EXPECT_EQ(synchronize(), cudaSuccess);
}

// ---- Blocks of a cluster run at once and reach each other's shared memory.

using Where = std::source_location;

void all_of_cluster(Where where = Where::current()) { cluster_barrier(where); }
float* own_memory() { return static_cast<float*>(dynamic_shared()); }
float* memory_of(unsigned rank, Where where = Where::current()) {
  return static_cast<float*>(shared_of(own_memory(), rank, where));
}

Size clusters(unsigned blocks, unsigned of) {
  return {.blocks = blocks, .threads = 32, .shared_bytes = 128, .cluster_blocks = of};
}

/// Each block gives its number to all of its cluster, which each add up what they got.
__global__ void add_numbers(float* to, unsigned of, bool waits) {
  const unsigned rank = cluster_rank();
  if (waits) {
    all_of_cluster();  // the others' memory may be written from here on
  }
  if (threadIdx.x < of) {
    memory_of(threadIdx.x)[rank] = static_cast<float>(blockIdx.x);
  }
  if (waits) {
    all_of_cluster();
  }
  if (threadIdx.x == 0) {
    to[blockIdx.x] = std::accumulate(own_memory(), own_memory() + of, 0.0F);
  }
}

TEST(EmulatedCluster, MissingBarriersShow) {
  const OnDevice<float> sums(std::vector<float>(8));
  ASSERT_EQ(run(add_numbers, clusters(8, 8), nullptr, sums.data, 8U, false), cudaSuccess);
  const auto values = sums.values();
  EXPECT_TRUE(std::any_of(values.begin(), values.end(), [](float v) { return std::isnan(v); }));
}

/// Memory of a block that has ended, and may be another's already.
__global__ void read_of_the_dead(float* to) {
  own_memory()[threadIdx.x] = 1;
  all_of_cluster();
  if (cluster_rank() == 1) {
    for (int turn = 0; turn < 20; ++turn) {
      __syncthreads();
    }
    to[threadIdx.x] = memory_of(0)[threadIdx.x];
  }
}

TEST(EmulatedCluster, LosesTheSharedMemoryOfBlocksThatEnd) {
  const OnDevice<float> found(std::vector<float>(32));
  ASSERT_EQ(run(read_of_the_dead, clusters(2, 2), nullptr, found.data), cudaSuccess);
  for (const float value : found.values()) {
    EXPECT_TRUE(std::isnan(value)) << value;
  }
}

TEST(EmulatedCluster, IsRefusedWhereItCannotBe) {
  const OnDevice<float> sums(std::vector<float>(16));
  const auto launched = [&](unsigned blocks, unsigned of) {
    return run(add_numbers, clusters(blocks, of), nullptr, sums.data, of, true);
  };
  const auto fits = [&](unsigned blocks) {
    int count = -1;
    const cudaError_t error = active_clusters(&count, clusters(blocks, blocks),
                                              reinterpret_cast<const void*>(add_numbers));
    return std::pair{error, count};
  };
  EXPECT_EQ(launched(16, 16), cudaErrorInvalidClusterSize) << "8 are portable";
  EXPECT_EQ(fits(16).first, cudaErrorInvalidClusterSize);
  EXPECT_EQ(launched(6, 4), cudaErrorInvalidClusterSize) << "no whole clusters";
  EXPECT_EQ(fits(8), (std::pair{cudaSuccess, 1}));
  device().cluster_blocks = 4;
  EXPECT_EQ(fits(8), (std::pair{cudaSuccess, 0}));
  EXPECT_EQ(launched(8, 8), cudaErrorInvalidClusterSize);
  EXPECT_EQ(launched(8, 4), cudaSuccess);
  device().major = 8;
  EXPECT_EQ(fits(2).first, cudaErrorInvalidClusterSize);
  EXPECT_EQ(launched(2, 2), cudaErrorInvalidClusterSize);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidClusterSize);
  EXPECT_EQ(synchronize(), cudaSuccess);
}

// ---- What either does wrong.

__global__ void own_barrier(float* /*unused*/) { __syncthreads(); }
__global__ void barrier_of_all(float* /*unused*/) { all_blocks(); }
__global__ void one_block_stays_away(float* /*unused*/) {
  if (blockIdx.x > 0) {
    all_blocks();
  }
}
__global__ void two_barriers_of_all(float* /*unused*/) {
  if (blockIdx.x > 0) {
    all_blocks();
  } else {
    all_blocks();
  }
}
__global__ void barrier_of_a_cluster(float* /*unused*/) { all_of_cluster(); }
__global__ void one_leaves(float* /*unused*/) {
  if (cluster_rank() == 1 || threadIdx.x > 0) {
    all_of_cluster();
  }
}
__global__ void own_and_of_all(float* /*unused*/) {
  if (threadIdx.x == 0) {
    __syncthreads();
  } else {
    all_of_cluster();
  }
}
__global__ void two_of_all(float* /*unused*/) {
  if (cluster_rank() == 0) {
    all_of_cluster();
  } else {
    all_of_cluster();
  }
}
__global__ void beyond_the_cluster(float* /*unused*/) { memory_of(2)[0] = 1; }
__global__ void not_shared(float* to) { shared_of(to, 0, Where::current()); }
__global__ void copy_to_another(float* from) {
  all_of_cluster();
  __pipeline_memcpy_async(memory_of(1 - cluster_rank()) + threadIdx.x, from, sizeof(float));
  __pipeline_commit();
  __pipeline_wait_prior(0);
  all_of_cluster();
}

struct GroupFault {
  Size size;
  void (*kernel)(float*);
  const char* sentence;
};

class EmulatedGroupFault : public testing::TestWithParam<GroupFault> {};

TEST_P(EmulatedGroupFault, IsFound) {
  const OnDevice<float> memory({0});
  EXPECT_EQ(run(GetParam().kernel, GetParam().size, nullptr, memory.data), cudaSuccess);
  synchronize();
  const std::vector<std::string> violations = take_violations();
  ASSERT_FALSE(violations.empty());
  EXPECT_THAT(violations.front(), HasSubstr(GetParam().sentence));
}

constexpr Size two_blocks{.blocks = 2, .threads = 32};
const Size together = cooperative(2);
const Size cluster = clusters(2, 2);

INSTANTIATE_TEST_SUITE_P(
    Rules, EmulatedGroupFault,
    testing::Values(
        GroupFault{two_blocks, barrier_of_all, "is in no cooperative launch"},
        GroupFault{together, own_barrier, "has only those of all blocks"},
        GroupFault{together, one_block_stays_away, "not reached by all threads of the grid: 64"},
        GroupFault{together, two_barriers_of_all, "different barriers"},
        GroupFault{two_blocks, barrier_of_a_cluster, "is in no launch of clusters"},
        GroupFault{cluster, one_leaves, "not reached by all threads of the cluster: 1 have"},
        GroupFault{cluster, own_and_of_all, "threads of one block wait at different barriers"},
        GroupFault{cluster, two_of_all, "threads of one cluster wait at different barriers"},
        GroupFault{cluster, beyond_the_cluster, "block 2 at"},
        GroupFault{cluster, not_shared, "is not in the block's shared memory"},
        GroupFault{cluster, copy_to_another, "into another block's shared memory"}));

}  // namespace

}  // namespace cuda_host::test
