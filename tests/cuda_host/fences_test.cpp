// SPDX-License-Identifier: Apache-2.0
// A launch that touches what it has not declared is found, though all of it lies in one block.
#include "fences.h"

#include <gmock/gmock.h>

#include "kernels/bind.h"
#include "owners.h"

namespace cuda_host::test {
namespace {

using crossover::cuda::AddLaunch;
using crossover::cuda::Launch;
using crossover::cuda::Operand;
using crossover::cuda::SgdLaunch;
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
            SgdLaunch{{{.w = tensor_at(0), .g = tensor_at(1), .count = extent}}, 1},
            SgdLaunch{{{.w = tensor_at(0), .g = tensor_at(2), .count = 20}}, 1}},
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
        cudaDeviceSynchronize();
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
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_THAT(take_violations(), ElementsAre());
  declare(nullptr);
  const float negative = -1;
  ASSERT_EQ(cudaMemcpy(memory.data + 3, &negative, 4, cudaMemcpyHostToDevice), cudaSuccess);
  declare(&ranges);
  ASSERT_EQ(run(add_to, {1, 2}, nullptr, memory.data, memory.data + 2), cudaSuccess);
  declare(nullptr);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_THAT(take_violations(),
              ElementsAre(HasSubstr("may only be read is written at its byte 7 of 8")));
}

}  // namespace
}  // namespace cuda_host::test
