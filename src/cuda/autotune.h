// SPDX-License-Identifier: Apache-2.0
// The fastest of the algorithms that cuBLASLt's heuristic proposes for a product, by measurement.
#pragma once

#include <cstdint>

#include "product.h"

namespace crossover::cuda {

/// Addresses of a product's operands; what the form has no use for is null.
struct ProductOperands {
  const void* a = nullptr;
  const void* b = nullptr;
  void* d = nullptr;
  void* vector = nullptr;
  void* mask = nullptr;
  void* workspace = nullptr;
  std::int64_t workspace_bytes = 0;
};

/// Runs all candidates for the form on these operands, which it writes to like the product itself,
/// and leaves the library the fastest; of equals, the one that the heuristic ranks higher. Returns
/// when all is done. A form that has one candidate left is not run.
void autotune(ProductLibrary& library, const ProductForm& form, const ProductOperands& operands,
              cudaStream_t stream);

}  // namespace crossover::cuda
