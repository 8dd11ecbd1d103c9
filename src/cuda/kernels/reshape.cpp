// SPDX-License-Identifier: Apache-2.0
#include "reshape.cuh"

#include "bind.h"

namespace crossover::cuda {

BoundLaunch bind(const ReshapeLaunch& launch, const Binding& binding) {
  return {launch.moves() ? OpCategory::reorder : OpCategory::elementwise,
          [launch, binding](const Position& now) {
            cuda::reshape(binding.stream, bytes(launch.x.type), binding.address(launch.x, now),
                          binding.address(launch.y, now), launch.count, launch.from, launch.to);
          }};
}

BoundLaunch bind(const ZeroLaunch& launch, const Binding& binding) {
  return {OpCategory::elementwise, [launch, binding](const Position& now) {
            zero(binding.stream, binding.address<float>(launch.to, now), launch.count);
          }};
}

}  // namespace crossover::cuda
