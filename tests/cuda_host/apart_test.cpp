// SPDX-License-Identifier: Apache-2.0
// Races between blocks: that they are found, and that no kernel has one.
#include "apart.h"

#include <gmock/gmock.h>

#include <numeric>

#include "crossover/backend.h"
#include "crossover/probe.h"
#include "emulated.h"
#include "expect_operation.h"
#include "owners.h"

namespace cuda_host::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

__global__ void apart(int* to) { to[blockIdx.x * blockDim.x + threadIdx.x] += 1; }
__global__ void one_writes_for_all(int* to) { to[threadIdx.x] = static_cast<int>(blockIdx.x); }
__global__ void neighbours(int* to) { to[blockIdx.x] = to[(blockIdx.x + 1) % gridDim.x] + 1; }
__global__ void count(int* to) { *to += 1; }

/// What is found in three blocks of 32 threads on consecutive numbers.
std::vector<std::string> found(void (*kernel)(int*)) {
  device().blocks_apart = true;
  std::vector<int> values(96);
  std::iota(values.begin(), values.end(), 1000);
  const OnDevice<int> numbers(values);
  run(kernel, {3, 32}, nullptr, numbers.data);
  cudaDeviceSynchronize();
  return take_violations();
}

TEST(EmulatedBlocks, GetInEachOthersWay) {
  EXPECT_THAT(found(apart), ElementsAre());
  EXPECT_THAT(found(one_writes_for_all), ElementsAre(HasSubstr(" both write to ")));
  reset();
  EXPECT_THAT(found(count), ElementsAre(HasSubstr(" both write to ")));
  reset();
  EXPECT_THAT(found(neighbours), ElementsAre(HasSubstr("reads what another writes")));
}

TEST(EmulatedBlocks, LeaveWhatTheyWrite) {
  device().blocks_apart = true;
  const OnDevice<int> numbers(std::vector<int>(96));
  ASSERT_EQ(run(apart, {3, 32}, nullptr, numbers.data), cudaSuccess);
  EXPECT_THAT(numbers.values(), testing::Each(1));
}

}  // namespace
}  // namespace cuda_host::test

namespace crossover::test {
namespace {

/// Large enough for several blocks, and small enough to run them twice.
bool is_of_use(const OperationCase& c) {
  std::int64_t largest = 0;
  for (const Tensor& tensor : c.workload.tensors) {
    largest = std::max(largest, elements(tensor.shape));
  }
  return largest > 300 && largest < 40'000;
}

class EmulatedBlocks : public testing::TestWithParam<OperationCase> {};

TEST_P(EmulatedBlocks, OfOperationsStayApart) {
  cuda_host::device().blocks_apart = true;
  cuda_host::device().refused_epilogues = all_epilogues;  // more kernels
  if (const std::string reason = missing(GetParam(), *make_cuda_backend().backend);
      !reason.empty()) {
    GTEST_SKIP() << reason;
  }
  const Precision precision = stored_precision(GetParam().workload);
  const auto program =
      make_cuda_backend().backend->compile(GetParam().workload, {.precision = precision});
  expect_operation(GetParam(), *program, precision);
}

std::vector<OperationCase> cases() {
  std::vector<OperationCase> all = operation_cases();
  std::erase_if(all, [](const OperationCase& c) { return !is_of_use(c); });
  return all;
}

INSTANTIATE_TEST_SUITE_P(Gpu, EmulatedBlocks, testing::ValuesIn(cases()),
                         [](const auto& parameters) { return parameters.param.name; });

TEST(EmulatedBlocks, OfProbesStayApart) {
  cuda_host::device().blocks_apart = true;
  for (const ProbeSpec& spec :
       {ProbeSpec(FmaProbe{.values = 2000, .length = 7}), ProbeSpec(TriadProbe{.values = 1003}),
        ProbeSpec(MatrixProbe{.precision = Precision::f32, .size = 64}),
        ProbeSpec(MatrixProbe{.precision = Precision::f16, .size = 128})}) {
    const auto probe = make_cuda_backend().backend->make_probe(spec);
    probe->run();
    EXPECT_NO_THROW(probe->check());
  }
}

}  // namespace
}  // namespace crossover::test
