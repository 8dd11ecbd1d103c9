// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <set>

#include "../libraries/measure_arithmetic.h"
#include "bind.h"

namespace crossover::cuda {
namespace {

ProductOperands operands(const ProductLaunch& launch, const Binding& binding, const Position& now) {
  return {.a = binding.address(launch.a, now),
          .b = binding.address(launch.b, now),
          .d = binding.address(launch.d, now),
          .vector = binding.address(launch.vector, now),
          .mask = binding.address(launch.mask, now),
          .workspace = binding.address(binding.workspace),
          .workspace_bytes = binding.plan->workspace_bytes};
}

}  // namespace

BoundLaunch bind(const ProductLaunch& launch, const Binding& binding) {
  const ProductOperands fixed = operands(launch, binding, first_buffer);
  const std::shared_ptr<Product> product =
      binding.products->make(launch.form, fixed.vector, fixed.mask);
  return {OpCategory::product, [product, launch, binding](const Position& now) {
            product->execute(binding.stream, binding.address(launch.a, now),
                             binding.address(launch.b, now), binding.address(launch.d, now),
                             binding.address(binding.workspace), binding.plan->workspace_bytes);
          }};
}

void choose_products(const Binding& binding, ProductChoice choice) {
  for (const ProductLaunch& product : launches_of<ProductLaunch>(*binding.plan)) {
    binding.products->choose(product.form, operands(product, binding, first_buffer), binding.stream,
                             choice);
  }
}

Arithmetic measure_products(const Binding& binding, Precision precision) {
  Arithmetic found{.tf32 = Tf32Factors::exact};
  std::set<ProductForm> measured;
  for (const ProductLaunch& launch : launches_of<ProductLaunch>(*binding.plan)) {
    if (!measured.insert(launch.form).second) {
      continue;
    }
    const ProductOperands its = operands(launch, binding, first_buffer);
    const auto product = binding.products->make(launch.form, its.vector, its.mask);
    if (precision == Precision::tf32) {
      found.tf32 =
          std::max(found.tf32, measure_tf32_factors(*product, launch.form, its, binding.stream));
    }
    if (writes_mask(launch.form.epilogue) &&
        measure_mask_at_zero(*product, launch.form, its, binding.stream)) {
      found.relu_passes_zero = true;
    }
  }
  return found;
}

}  // namespace crossover::cuda
