// SPDX-License-Identifier: Apache-2.0
#include "products.h"

namespace crossover::cuda {

void execute(const Product& product, const ProductOperands& operands, cudaStream_t stream) {
  product.execute(stream, operands.a, operands.b, operands.d, operands.workspace,
                  operands.workspace_bytes);
}

void Products::choose(const ProductForm& form, const ProductOperands& operands, cudaStream_t stream,
                      ProductChoice how) {
  if (!chosen_.insert(form).second) {
    return;
  }
  algorithms_.choose(
      form, how == ProductChoice::autotuned,
      [&](int algorithm) {
        return library_->make(form, algorithm, operands.vector, operands.mask);
      },
      [&](const Product& product) { execute(product, operands, stream); }, stream);
}

std::unique_ptr<Product> Products::make(const ProductForm& form, const void* vector,
                                        const void* mask) {
  return library_->make(form, algorithms_.first(form), vector, mask);
}

}  // namespace crossover::cuda
