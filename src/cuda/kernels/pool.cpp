// SPDX-License-Identifier: Apache-2.0
#include "pool.cuh"

#include "bind.h"

namespace crossover::cuda {

BoundLaunch bind(const MaxPoolLaunch& launch, const Binding& binding) {
  return {OpCategory::pooling, [launch, binding](const Position& now) {
            max_pool(binding.stream, launch.x.type, launch.pooling, binding.address(launch.x, now),
                     binding.address(launch.y, now),
                     binding.address<std::uint8_t>(launch.where, now));
          }};
}

BoundLaunch bind(const MaxPoolGradLaunch& launch, const Binding& binding) {
  return {OpCategory::pooling, [launch, binding](const Position& now) {
            max_pool_grad(binding.stream, launch.dy.type, launch.pooling, launch.x_activation,
                          binding.maybe(launch.y, now),
                          binding.address<std::uint8_t>(launch.where, now),
                          binding.address(launch.dy, now), binding.address(launch.dx, now));
          }};
}

BoundLaunch bind(const AveragePoolLaunch& launch, const Binding& binding) {
  return {OpCategory::pooling, [launch, binding](const Position& now) {
            average_pool(binding.stream, launch.x.type, launch.pooling,
                         binding.address(launch.x, now), binding.address(launch.y, now));
          }};
}

BoundLaunch bind(const AveragePoolGradLaunch& launch, const Binding& binding) {
  return {OpCategory::pooling, [launch, binding](const Position& now) {
            average_pool_grad(binding.stream, launch.dy.type, launch.pooling, launch.x_activation,
                              binding.maybe(launch.x, now), binding.address(launch.dy, now),
                              binding.address(launch.dx, now));
          }};
}

BoundLaunch bind(const GlobalAveragePoolLaunch& launch, const Binding& binding) {
  return {OpCategory::pooling, [launch, binding](const Position& now) {
            global_average_pool(binding.stream, launch.x.type, binding.address(launch.x, now),
                                binding.address(launch.y, now), launch.batch, launch.pixels,
                                launch.channels);
          }};
}

BoundLaunch bind(const GlobalAveragePoolGradLaunch& launch, const Binding& binding) {
  return {OpCategory::pooling, [launch, binding](const Position& now) {
            global_average_pool_grad(
                binding.stream, launch.dy.type, binding.address(launch.dy, now),
                binding.address(launch.dx, now), launch.batch, launch.pixels, launch.channels);
          }};
}

}  // namespace crossover::cuda
