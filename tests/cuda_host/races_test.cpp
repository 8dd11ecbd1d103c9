// SPDX-License-Identifier: Apache-2.0
// Only in the build with ThreadSanitizer: races within a block, a grid and a cluster are found, and
// what barriers order is none.
#include <cuda_pipeline_primitives.h>
#include <gmock/gmock.h>

#include "owners.h"

namespace cuda_host::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

/// Between what threads write and what others read of it.
enum class Between { nothing, shuffle, barrier };

/// Each number goes to a neighbour through shared memory, twice.
template <Between between, bool before_the_next>
__global__ void pass_on(int* to) {
  __shared__ int values[64];
  for (int time = 0; time < 2; ++time) {
    values[threadIdx.x] = to[threadIdx.x];
    if constexpr (between == Between::shuffle) {
      __shfl_xor_sync(0xffffffffU, 0, 1);
    } else if constexpr (between == Between::barrier) {
      __syncthreads();
    }
    to[threadIdx.x] = values[threadIdx.x ^ 1U];
    if constexpr (before_the_next) {
      __syncthreads();
    }
  }
}

__global__ void pass_on_in_grid(int* to, bool with_barrier) {
  int* from = to + 128;
  const unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
  from[at] = 1;
  if (with_barrier) {
    grid_barrier(std::source_location::current());
  }
  to[at] = from[(at + blockDim.x) % (gridDim.x * blockDim.x)];
}

__global__ void pass_on_in_cluster(int* to, bool of_the_cluster) {
  auto* own = static_cast<int*>(dynamic_shared());
  own[threadIdx.x] = 1;
  if (of_the_cluster) {
    cluster_barrier(std::source_location::current());
  } else {
    __syncthreads();
  }
  const auto* others = static_cast<int*>(
      shared_of(own, (cluster_rank() + 1) % gridDim.x, std::source_location::current()));
  to[blockIdx.x * blockDim.x + threadIdx.x] = others[threadIdx.x];
  cluster_barrier(std::source_location::current());
}

/// A thread reads what another's asynchronous copy brings.
__global__ void pass_on_a_copy(int* to, bool with_barrier) {
  const int* from = to + 128;
  auto* values = static_cast<int*>(dynamic_shared());
  __pipeline_memcpy_async(values + threadIdx.x, from + threadIdx.x, sizeof(int));
  __pipeline_commit();
  __pipeline_wait_prior(0);
  if (with_barrier) {
    __syncthreads();
  }
  to[threadIdx.x] = values[threadIdx.x ^ 1U];
}

/// What is said of threads that race, if anything.
template <class... P, class... A>
std::string races_of(void (*kernel)(P...), Size size, A... arguments) {
  reset();  // a race ends the context
  const OnDevice<int> to(std::vector<int>(256));
  EXPECT_EQ(run(kernel, size, nullptr, to.data, arguments...), cudaSuccess);
  synchronize();
  const std::vector<std::string> sentences = take_violations();
  return sentences.empty() ? "" : sentences.front();
}

constexpr Size block{.blocks = 1, .threads = 64, .shared_bytes = 256};
constexpr Size grid{.blocks = 2, .threads = 64, .cooperative = true};
constexpr Size cluster{.blocks = 2, .threads = 64, .shared_bytes = 256, .cluster_blocks = 2};

TEST(EmulatedRaces, AreNoneWhereBarriersStand) {
  EXPECT_THAT(races_of(pass_on<Between::barrier, true>, block), IsEmpty());
  EXPECT_THAT(races_of(pass_on_in_grid, grid, true), IsEmpty());
  EXPECT_THAT(races_of(pass_on_in_cluster, cluster, true), IsEmpty());
  EXPECT_THAT(races_of(pass_on_a_copy, block, true), IsEmpty());
}

TEST(EmulatedRaces, AreFoundWhereTheyDoNot) {
  const auto is_race = HasSubstr("threads race");
  EXPECT_THAT(races_of(pass_on<Between::nothing, true>, block), is_race);
  EXPECT_THAT(races_of(pass_on<Between::shuffle, true>, block), is_race) << "it orders nothing";
  EXPECT_THAT(races_of(pass_on<Between::barrier, false>, block), is_race) << "with the next turn";
  EXPECT_THAT(races_of(pass_on_in_grid, grid, false), is_race);
  EXPECT_THAT(races_of(pass_on_in_cluster, cluster, false), is_race);
  EXPECT_THAT(races_of(pass_on_a_copy, block, false), is_race);
}

}  // namespace
}  // namespace cuda_host::test
