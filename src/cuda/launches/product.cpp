// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <variant>

#include "../autotune.h"
#include "bind.h"

namespace crossover::cuda {
namespace {

ProductOperands operands(const ProductLaunch& launch, const Binding& binding, const Position& now) {
  const auto maybe = [&](const Operand& operand) {
    return operand.exists() ? binding.address(operand, now) : nullptr;
  };
  return {.a = binding.address(launch.a, now),
          .b = binding.address(launch.b, now),
          .d = binding.address(launch.d, now),
          .vector = maybe(launch.vector),
          .mask = maybe(launch.mask),
          .workspace = binding.address(binding.plan->workspace),
          .workspace_bytes = binding.plan->workspace_bytes};
}

constexpr Position somewhere{.buffer = 0};  // an epilogue's operands stay where they are

}  // namespace

BoundLaunch bind(const ProductLaunch& launch, const Binding& binding) {
  const ProductOperands fixed = operands(launch, binding, somewhere);
  auto product =
      std::make_shared<Product>(*binding.products, launch.form, fixed.vector, fixed.mask);
  return {OpCategory::product, [product, launch, binding](const Position& now) {
            product->execute(binding.stream, binding.address(launch.a, now),
                             binding.address(launch.b, now), binding.address(launch.d, now),
                             binding.address(binding.plan->workspace),
                             binding.plan->workspace_bytes);
          }};
}

void autotune_products(const Binding& binding) {
  for (const StepPlan& step : binding.plan->steps) {
    for (const Launch& launch : step.launches) {
      if (const auto* product = std::get_if<ProductLaunch>(&launch)) {
        autotune(*binding.products, product->form, operands(*product, binding, somewhere),
                 binding.stream);
      }
    }
  }
}

}  // namespace crossover::cuda
