// SPDX-License-Identifier: Apache-2.0
#include "batch_norm.cuh"

#include "bind.h"

namespace crossover::cuda {
namespace {

BatchNormGradArguments arguments(const BatchNormGradSumsLaunch& launch, const Binding& binding,
                                 const Position& now) {
  return {.x = binding.address(launch.x, now),
          .mean = binding.address<float>(launch.mean, now),
          .inverse_deviation = binding.address<float>(launch.inverse_deviation, now),
          .y = binding.maybe(launch.y, now),
          .dy = binding.address(launch.dy, now),
          .dy_more = binding.maybe(launch.dy_more, now),
          .partial = binding.address<float>(launch.sums.partial, now),
          .rows = launch.sums.rows,
          .channels = launch.sums.channels,
          .chunks = launch.sums.chunks,
          .activation = launch.activation};
}

}  // namespace

BoundLaunch bind(const BatchNormStatisticsLaunch& launch, const Binding& binding) {
  return {OpCategory::normalization, [launch, binding](const Position& now) {
            batch_norm_statistics(binding.stream, launch.x.type,
                                  {.x = binding.address(launch.x, now),
                                   .partial = binding.address<float>(launch.sums.partial, now),
                                   .rows = launch.sums.rows,
                                   .channels = launch.sums.channels,
                                   .chunks = launch.sums.chunks});
          }};
}

BoundLaunch bind(const BatchNormLaunch& launch, const Binding& binding) {
  return {OpCategory::normalization, [launch, binding](const Position& now) {
            batch_norm(binding.stream, launch.x.type,
                       {.x = binding.address(launch.x, now),
                        .scale = binding.address<float>(launch.scale, now),
                        .shift = binding.address<float>(launch.shift, now),
                        .addend = binding.maybe(launch.addend, now),
                        .y = binding.address(launch.y, now),
                        .mean = binding.address<float>(launch.mean, now),
                        .inverse_deviation = binding.address<float>(launch.inverse_deviation, now),
                        .partial = binding.address<float>(launch.sums.partial, now),
                        .rows = launch.sums.rows,
                        .channels = launch.sums.channels,
                        .chunks = launch.sums.chunks,
                        .epsilon = static_cast<float>(launch.epsilon),
                        .activation = launch.activation});
          }};
}

BoundLaunch bind(const BatchNormGradSumsLaunch& launch, const Binding& binding) {
  return {OpCategory::normalization, [launch, binding](const Position& now) {
            batch_norm_grad_sums(binding.stream, launch.x.type, arguments(launch, binding, now));
          }};
}

BoundLaunch bind(const BatchNormGradLaunch& launch, const Binding& binding) {
  return {OpCategory::normalization, [launch, binding](const Position& now) {
            BatchNormGradArguments all = arguments(launch.of, binding, now);
            all.scale = binding.address<float>(launch.scale, now);
            all.dx = binding.address(launch.dx, now);
            all.dscale = binding.address<float>(launch.dscale, now);
            all.dshift = binding.address<float>(launch.dshift, now);
            all.daddend = binding.maybe(launch.daddend, now);
            batch_norm_grad(binding.stream, launch.of.x.type, all);
          }};
}

}  // namespace crossover::cuda
