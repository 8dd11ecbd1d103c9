// SPDX-License-Identifier: Apache-2.0
#include "cast.cuh"

#include "bind.h"

namespace crossover::cuda {

BoundLaunch bind(const CastLaunch& launch, const Binding& binding) {
  return {OpCategory::elementwise, [launch, binding](const Position& now) {
            CastSpans spans;
            for (const CastLaunch::One& one : launch.casts) {
              spans.span[spans.count++] = {binding.address(one.x, now), binding.address(one.y, now),
                                           one.count};
            }
            cuda::cast(binding.stream, launch.casts.front().x.type, launch.casts.front().y.type,
                       spans);
          }};
}

}  // namespace crossover::cuda
