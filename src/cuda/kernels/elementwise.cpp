// SPDX-License-Identifier: Apache-2.0
#include "elementwise.cuh"

#include "bind.h"

namespace crossover::cuda {

BoundLaunch bind(const BiasActivateLaunch& launch, const Binding& binding) {
  return {OpCategory::elementwise, [launch, binding](const Position& now) {
            bias_activate(binding.stream, launch.activation, launch.y.type,
                          binding.address<float>(launch.x, now), binding.address(launch.bias, now),
                          binding.address(launch.y, now), launch.rows, launch.columns);
          }};
}

BoundLaunch bind(const ChannelBiasLaunch& launch, const Binding& binding) {
  return {OpCategory::elementwise, [launch, binding](const Position& now) {
            channel_bias(binding.stream, launch.activation, launch.y.type,
                         binding.address<float>(launch.bias, now), binding.address(launch.y, now),
                         launch.rows, launch.channels);
          }};
}

BoundLaunch bind(const ActivateLaunch& launch, const Binding& binding) {
  return {OpCategory::elementwise, [launch, binding](const Position& now) {
            cuda::activate(binding.stream, launch.activation, launch.x.type,
                           binding.address(launch.x, now), binding.address(launch.y, now),
                           launch.count);
          }};
}

BoundLaunch bind(const ActivateGradLaunch& launch, const Binding& binding) {
  return {OpCategory::elementwise, [launch, binding](const Position& now) {
            activate_grad(binding.stream, launch.activation, launch.y.type,
                          binding.address(launch.y, now), binding.address(launch.dy, now),
                          binding.address(launch.dx, now), launch.count);
          }};
}

BoundLaunch bind(const AddLaunch& launch, const Binding& binding) {
  return {OpCategory::elementwise, [launch, binding](const Position& now) {
            cuda::add(binding.stream, launch.y.type, binding.address(launch.a, now),
                      binding.address(launch.b, now), binding.address(launch.y, now), launch.count);
          }};
}

}  // namespace crossover::cuda
