// SPDX-License-Identifier: Apache-2.0
#include "reduction.cuh"

#include "bind.h"

namespace crossover::cuda {

BoundLaunch bind(const ColumnSumsLaunch& launch, const Binding& binding) {
  return {OpCategory::elementwise, [launch, binding](const Position& now) {
            column_sums(binding.stream, launch.matrix.type, binding.address(launch.matrix, now),
                        launch.rows, launch.columns, launch.parts, launch.accumulate,
                        binding.address<float>(launch.sums, now));
          }};
}

}  // namespace crossover::cuda
