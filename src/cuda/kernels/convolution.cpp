// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "../libraries/measure_arithmetic.h"
#include "bind.h"

namespace crossover::cuda {
namespace {

ConvolutionOperands operands(const ConvolutionLaunch& launch, const Binding& binding,
                             const Position& now) {
  return {.x = binding.address(launch.x, now),
          .w = binding.address(launch.w, now),
          .y = binding.address(launch.y, now),
          .bias = binding.address(launch.bias, now),
          .workspace = binding.address(binding.workspace),
          .workspace_bytes = binding.plan->workspace_bytes};
}

}  // namespace

BoundLaunch bind(const ConvolutionLaunch& launch, const Binding& binding) {
  return {OpCategory::convolution,
          [plan = binding.convolutions->chosen(launch.form), launch, binding](const Position& now) {
            plan->execute(binding.stream, operands(launch, binding, now));
          }};
}

void choose_convolutions(const Binding& binding, ConvolutionChoice choice) {
  for (const ConvolutionLaunch& launch : launches_of<ConvolutionLaunch>(*binding.plan)) {
    binding.convolutions->choose(launch.form, operands(launch, binding, first_buffer),
                                 binding.stream, choice);
  }
}

Arithmetic measure_convolutions(const Binding& binding, Precision precision) {
  Arithmetic found{.tf32 = Tf32Factors::exact};
  std::set<ConvolutionForm> measured;
  for (const ConvolutionLaunch& launch : launches_of<ConvolutionLaunch>(*binding.plan)) {
    if (precision == Precision::tf32 && measured.insert(launch.form).second) {
      found.tf32 =
          std::max(found.tf32,
                   measure_tf32_factors(*binding.convolutions->chosen(launch.form), launch.form,
                                        operands(launch, binding, first_buffer), binding.stream));
    }
  }
  return found;
}

}  // namespace crossover::cuda
