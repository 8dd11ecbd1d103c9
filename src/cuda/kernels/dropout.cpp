// SPDX-License-Identifier: Apache-2.0
#include "dropout.cuh"

#include "bind.h"

namespace crossover::cuda {

BoundLaunch bind(const CountLaunch& launch, const Binding& binding) {
  return {OpCategory::elementwise, [launch, binding](const Position& now) {
            count_up(binding.stream, binding.address<std::int32_t>(launch.counter, now));
          }};
}

BoundLaunch bind(const DropoutLaunch& launch, const Binding& binding) {
  return {OpCategory::elementwise, [launch, binding](const Position& now) {
            dropout(binding.stream, launch.x.type, binding.address(launch.x, now),
                    binding.address(launch.y, now), launch.count, launch.arrangement,
                    launch.probability, launch.seed,
                    binding.address<std::int32_t>(launch.step, now));
          }};
}

}  // namespace crossover::cuda
