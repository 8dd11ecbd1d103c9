// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <numeric>

#include "apart.h"
#include "crossover/backend.h"
#include "crossover/probe.h"
#include "emulated.h"
#include "fences.h"
#include "owners.h"
#include "run/bind.h"
#include "support.h"

namespace cuda_host::test {

// ---- A launch that touches what it has not declared is found, though all of it lies in one block.

namespace {

using crossover::cuda::AddLaunch;
using crossover::cuda::Launch;
using crossover::cuda::Operand;
using crossover::cuda::UpdateLaunch;
using testing::ElementsAre;
using testing::HasSubstr;

/// Three tensors of 16 floats, one behind another.
constexpr std::int64_t extent = 16;
constexpr Operand tensor_at(std::int64_t number) {
  constexpr std::int64_t bytes = extent * std::int64_t{sizeof(float)};
  return {.offset = number * bytes, .bytes = bytes};
}

void run_alone(const Launch& launch) {
  const OnDevice<float> memory(std::vector<float>(3 * extent));
  const Stream stream;
  crossover::cuda::LaunchPlan plan;
  plan.steps.push_back({.launches = {launch}});
  const crossover::cuda::Binding binding{
      .block = reinterpret_cast<std::byte*>(memory.data), .stream = stream, .plan = &plan};
  const auto steps = crossover::cuda::bind_steps(binding, nullptr);
  steps.front().front().call({});
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
}

class EmulatedFence : public testing::TestWithParam<std::pair<Launch, Launch>> {};

TEST_P(EmulatedFence, StopsALaunchBeyondItsOperands) {
  const auto& [right, wrong] = GetParam();
  run_alone(right);
#ifdef __SANITIZE_ADDRESS__
  EXPECT_DEATH(run_alone(wrong), "use-after-poison");
#endif
}

INSTANTIATE_TEST_SUITE_P(
    Of, EmulatedFence,
    testing::Values(
        // One element too many: of the tensor behind it, or of padding.
        std::pair<Launch, Launch>{AddLaunch{tensor_at(0), tensor_at(1), tensor_at(2), extent},
                                  AddLaunch{tensor_at(1), tensor_at(1), tensor_at(0), extent + 1}},
        std::pair<Launch, Launch>{
            UpdateLaunch{{{.w = tensor_at(0), .g = tensor_at(1), .count = extent}}, {}},
            UpdateLaunch{{{.w = tensor_at(0), .g = tensor_at(2), .count = 20}}, {}}},
        // A part that begins where the other's is meant.
        std::pair<Launch, Launch>{
            AddLaunch{part_of(tensor_at(0), 16), tensor_at(0), tensor_at(2), extent - 4},
            AddLaunch{part_of(tensor_at(0), 32), tensor_at(0), tensor_at(2), extent - 4}}));

__global__ void add_to(float* to, float* from) {
  to[threadIdx.x] += from[threadIdx.x];
  from[threadIdx.x] = from[threadIdx.x] < 0 ? 1 : from[threadIdx.x];
}

#ifdef __SANITIZE_ADDRESS__
TEST(EmulatedFences, StopALaunchOnNoneOfItsOperands) {
  const OnDevice<float> memory({0, 0, 3, 4});
  const std::vector<Range> ranges{{"", memory.data, 8, true}};
  declare(&ranges);
  EXPECT_DEATH(
      {
        run(add_to, {1, 2}, nullptr, memory.data + 2, memory.data + 2);
        synchronize();
      },
      "use-after-poison");
  declare(nullptr);
}
#endif

TEST(EmulatedFences, FindWhatIsWrittenThatIsOnlyRead) {
  const OnDevice<float> memory({0, 0, 3, 4});
  const std::vector<Range> ranges{{"", memory.data, 8, true}, {"", memory.data + 2, 8, false}};
  declare(&ranges);
  ASSERT_EQ(run(add_to, {1, 2}, nullptr, memory.data, memory.data + 2), cudaSuccess);
  ASSERT_EQ(synchronize(), cudaSuccess);
  EXPECT_THAT(take_violations(), ElementsAre());
  declare(nullptr);
  const float negative = -1;
  ASSERT_EQ(cudaMemcpyAsync(memory.data + 3, &negative, 4, cudaMemcpyHostToDevice), cudaSuccess);
  declare(&ranges);
  ASSERT_EQ(run(add_to, {1, 2}, nullptr, memory.data, memory.data + 2), cudaSuccess);
  declare(nullptr);
  ASSERT_EQ(synchronize(), cudaSuccess);
  EXPECT_THAT(take_violations(),
              ElementsAre(HasSubstr("may only be read is written at its byte 7 of 8")));
}

}  // namespace

// ---- Races between blocks: that they are found, and that no kernel has one.

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
  synchronize();
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

INSTANTIATE_TEST_SUITE_P(Gpu, EmulatedBlocks, testing::ValuesIn(cases()), labelled);

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
