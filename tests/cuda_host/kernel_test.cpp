// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <numeric>

#include "owners.h"

namespace cuda_host::test {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

__global__ void fill(float* to, unsigned count) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) {
    to[i] = static_cast<float>(i);
  }
}

TEST(EmulatedKernel, RunsEveryThread) {
  const OnDevice<float> memory(std::vector<float>(1000));
  ASSERT_EQ(run(fill, {4, 256}, nullptr, memory.data, 1000U), cudaSuccess);
  std::vector<float> expected(1000);
  std::iota(expected.begin(), expected.end(), 0.0F);
  EXPECT_EQ(memory.values(), expected);
}

/// Every thread sums a block's values, which the others have put into shared memory.
__global__ void sum_shared(float* to, bool with_barrier) {
  __shared__ float values[64];
  values[threadIdx.x] = 1;
  if (with_barrier) {
    __syncthreads();
  }
  float sum = 0;
  for (const float value : values) {
    sum += value;
  }
  to[threadIdx.x] = sum;
}

TEST(EmulatedKernel, BarriersWait) {
  const OnDevice<float> sums(std::vector<float>(64));
  ASSERT_EQ(run(sum_shared, {1, 64}, nullptr, sums.data, true), cudaSuccess);
  EXPECT_THAT(sums.values(), Each(64));
}

/// What a block finds in the shared memory of a function template, which it then writes to.
template <class T>
__global__ void take_over(T* to) {
  __shared__ T left;
  to[blockIdx.x] = left;
  left = 1;
}

TEST(EmulatedKernel, FindsGarbageInTheSharedMemoryOfTemplates) {
  const OnDevice<float> floats({0, 0, 0});
  ASSERT_EQ(run(take_over<float>, {3, 1}, nullptr, floats.data), cudaSuccess);
  for (const float value : floats.values()) {
    EXPECT_TRUE(std::isnan(value)) << value;
  }
  const OnDevice<int> ints({0, 0, 0});
  ASSERT_EQ(run(take_over<int>, {3, 1}, nullptr, ints.data), cudaSuccess);
  EXPECT_THAT(ints.values(), Each(-1));
}

TEST(EmulatedKernel, MissingBarriersShow) {
  const OnDevice<float> sums(std::vector<float>(64));
  ASSERT_EQ(run(sum_shared, {1, 64}, nullptr, sums.data, false), cudaSuccess);
  const auto values = sums.values();
  EXPECT_TRUE(std::any_of(values.begin(), values.end(), [](float v) { return std::isnan(v); }));
}

__global__ void sum_down(float* to) {
  auto value = static_cast<float>(threadIdx.x);
  for (int apart = 16; apart > 0; apart /= 2) {
    value += __shfl_down_sync(0xffffffffU, value, apart);
  }
  if (threadIdx.x % 32 == 0) {
    to[threadIdx.x / 32] = value;
  }
}

__global__ void sum_across(double* to) {
  double value = threadIdx.x;
  for (int apart = 16; apart > 0; apart /= 2) {
    value += __shfl_xor_sync(0xffffffffU, value, apart);
  }
  to[threadIdx.x] = value;
}

TEST(EmulatedKernel, ShufflesMeet) {
  const OnDevice<float> sums({0, 0});
  ASSERT_EQ(run(sum_down, {1, 64}, nullptr, sums.data), cudaSuccess);
  EXPECT_THAT(sums.values(), ElementsAre(496, 1520));
  const OnDevice<double> all(std::vector<double>(32));
  ASSERT_EQ(run(sum_across, {1, 32}, nullptr, all.data), cudaSuccess);
  EXPECT_THAT(all.values(), Each(496));
}

__global__ void leave_early(int*) {
  if (threadIdx.x != 3) {
    __syncthreads();
  }
}

__global__ void two_barriers(int*) {
  if (threadIdx.x < 32) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}

__global__ void read_a_lane_that_ended(int* to) {
  if (threadIdx.x < 16) {
    to[0] = __shfl_down_sync(0xffffffffU, to[0], 16);
  }
}

__global__ void half_in_a_shuffle(int* to) {
  if (threadIdx.x < 16) {
    to[0] = __shfl_xor_sync(0xffffffffU, to[0], 1);
  } else {
    __syncthreads();
  }
}

__global__ void half_a_mask(int* to) { to[0] = __shfl_xor_sync(0xffffU, to[0], 1); }

class EmulatedKernelFault : public testing::TestWithParam<std::pair<void (*)(int*), const char*>> {
};

TEST_P(EmulatedKernelFault, IsFound) {
  const auto [kernel, sentence] = GetParam();
  const OnDevice<int> memory({0});
  const Stream stream;
  EXPECT_EQ(run(kernel, {1, 64}, stream, memory.data), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorLaunchFailure);  // for good
  EXPECT_THAT(take_violations(), ElementsAre(HasSubstr(sentence)));
}

INSTANTIATE_TEST_SUITE_P(
    Rules, EmulatedKernelFault,
    testing::Values(std::pair{&leave_early, "not reached by all threads of the block: 1 have"},
                    std::pair{&two_barriers, "different barriers"},
                    std::pair{&read_a_lane_that_ended, "lane 16, which has ended"},
                    std::pair{&half_in_a_shuffle, "others at the barrier"},
                    std::pair{&half_a_mask, "not one of all lanes"}));

TEST(EmulatedKernel, RefusesHostMemoryAndWrongSizes) {
  float on_host = 0;
  EXPECT_EQ(run(fill, {1, 1025}, nullptr, &on_host, 1U), cudaErrorInvalidConfiguration);
  EXPECT_EQ(run(fill, {0, 32}, nullptr, &on_host, 1U), cudaErrorInvalidConfiguration);
  EXPECT_EQ(run(fill, {1, 1}, nullptr, &on_host, 1U), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  EXPECT_THAT(take_violations(), ElementsAre(HasSubstr("in no device or pinned memory")));
}

TEST(EmulatedKernel, DiesOutsideItsMemory) {
  const OnDevice<float> memory(std::vector<float>(64));  // 256 bytes: up to the last page's end
  EXPECT_DEATH(
      {
        run(fill, {1, 65}, nullptr, memory.data, 65U);
        cudaDeviceSynchronize();
      },
      "");
}

}  // namespace
}  // namespace cuda_host::test
