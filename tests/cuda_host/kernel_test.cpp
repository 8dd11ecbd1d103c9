// SPDX-License-Identifier: Apache-2.0
#include <cuda_pipeline_primitives.h>
#include <gmock/gmock.h>

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

/// What a block finds in the last of its launch's shared memory, which it then writes to.
__global__ void take_over_last(float* to, unsigned count) {
  auto* values = static_cast<float*>(dynamic_shared());
  to[blockIdx.x] = values[count - 1];
  values[count - 1] = 1;
}

TEST(EmulatedKernel, HasTheSharedMemoryOfItsLaunch) {
  const OnDevice<float> found({0, 0, 0});
  constexpr unsigned count = 1000;
  ASSERT_EQ(run(take_over_last, {3, 1, count * 4}, nullptr, found.data, count), cudaSuccess);
  for (const float value : found.values()) {
    EXPECT_TRUE(std::isnan(value)) << value;
  }
}

TEST(EmulatedKernel, MustBeAllowedMuchSharedMemory) {
  const OnDevice<float> found({0});
  const auto launched = [&](unsigned bytes) {
    return run(take_over_last, {1, 1, bytes}, nullptr, found.data, bytes / 4);
  };
  const auto* kernel = reinterpret_cast<const void*>(take_over_last);
  const auto most = static_cast<unsigned>(device().shared_bytes);
  EXPECT_EQ(launched(48U << 10U), cudaSuccess);
  EXPECT_EQ(launched(49U << 10U), cudaErrorInvalidValue);
  EXPECT_EQ(allow_shared_bytes(kernel, 50U << 10U), cudaSuccess);
  EXPECT_EQ(launched(49U << 10U), cudaSuccess);
  EXPECT_EQ(launched(51U << 10U), cudaErrorInvalidValue);
  EXPECT_EQ(allow_shared_bytes(kernel, most + 1), cudaErrorInvalidValue);
  EXPECT_EQ(allow_shared_bytes(kernel, most), cudaSuccess);
  EXPECT_EQ(launched(most), cudaSuccess);
  EXPECT_EQ(synchronize(), cudaSuccess);
}

/// Each thread copies a number through shared memory, and waits for it or not.
__global__ void copy_through(float* to, const float* from, bool waits_in_time) {
  auto* values = static_cast<float*>(dynamic_shared());
  __pipeline_memcpy_async(values + threadIdx.x, from + threadIdx.x, sizeof(float));
  __pipeline_commit();
  if (waits_in_time) {
    __pipeline_wait_prior(0);
  }
  __syncthreads();
  to[threadIdx.x] = values[blockDim.x - 1 - threadIdx.x];
  __pipeline_wait_prior(0);
}

TEST(EmulatedKernel, AsynchronousCopiesAreThereAfterTheWait) {
  const OnDevice<float> from(std::vector<float>(64, 2));
  const OnDevice<float> to(std::vector<float>(64));
  ASSERT_EQ(run(copy_through, {1, 64, 256}, nullptr, to.data, from.data, true), cudaSuccess);
  EXPECT_THAT(to.values(), Each(2));
  ASSERT_EQ(run(copy_through, {1, 64, 256}, nullptr, to.data, from.data, false), cudaSuccess);
  const auto values = to.values();
  EXPECT_TRUE(std::any_of(values.begin(), values.end(), [](float v) { return std::isnan(v); }));
}

__global__ void never_wait(int* from) {
  __pipeline_memcpy_async(static_cast<int*>(dynamic_shared()) + threadIdx.x, from, sizeof(int));
}

__global__ void copy_two_bytes(int* from) { __pipeline_memcpy_async(dynamic_shared(), from, 2); }

TEST(EmulatedKernel, AsynchronousCopiesHaveRules) {
  const OnDevice<int> memory({0});
  ASSERT_EQ(run(copy_two_bytes, {1, 1, 256}, nullptr, memory.data), cudaSuccess);
  synchronize();
  EXPECT_THAT(take_violations(), ElementsAre(HasSubstr("an asynchronous copy of 2 bytes")));
  ASSERT_EQ(run(never_wait, {1, 64, 256}, nullptr, memory.data), cudaSuccess);
  EXPECT_EQ(synchronize(), cudaErrorLaunchFailure);
  EXPECT_THAT(take_violations(),
              ElementsAre(HasSubstr("ends without having waited for its asynchronous copies")));
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
  EXPECT_EQ(synchronize(), cudaErrorIllegalAddress);
  EXPECT_THAT(take_violations(), ElementsAre(HasSubstr("in no device or pinned memory")));
}

TEST(EmulatedKernel, DiesOutsideItsMemory) {
  const OnDevice<float> memory(std::vector<float>(64));  // 256 bytes: up to the last page's end
  EXPECT_DEATH(
      {
        run(fill, {1, 65}, nullptr, memory.data, 65U);
        synchronize();
      },
      "");
}

}  // namespace
}  // namespace cuda_host::test
