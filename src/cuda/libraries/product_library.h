// SPDX-License-Identifier: Apache-2.0
// Matrix products as a library offers them: the algorithms that it has for a form, and a product by
// one of them. Planner and programs know no more of it; cublaslt_library.h is the one that runs.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <functional>
#include <memory>

#include "crossover/tensor.h"
#include "product_form.h"

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

/// One form by one algorithm, with its epilogue's vector and mask in place.
class Product {
 public:
  Product() = default;
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;
  virtual ~Product() = default;

  /// Puts it into the stream. Throws DeviceFailed and OutOfMemory; another std::runtime_error where
  /// the library refuses after all to run what it proposed.
  virtual void execute(cudaStream_t stream, const void* a, const void* b, void* d, void* workspace,
                       std::int64_t workspace_bytes) const = 0;
};

class ProductLibrary {
 public:
  ProductLibrary() = default;
  ProductLibrary(const ProductLibrary&) = delete;
  ProductLibrary& operator=(const ProductLibrary&) = delete;
  virtual ~ProductLibrary() = default;

  /// How many algorithms it proposes for the form; 0: it has none.
  [[nodiscard]] virtual int algorithms(const ProductForm& form) = 0;

  /// By the algorithm of that number, from 0, the library's best guess. `vector` is the bias that
  /// is read or the bias gradient that is written. The Product ends before the library does.
  [[nodiscard]] virtual std::unique_ptr<Product> make(const ProductForm& form, int algorithm,
                                                      const void* vector, const void* mask) = 0;
};

using MakeProductLibrary = std::function<std::unique_ptr<ProductLibrary>(Precision)>;

}  // namespace crossover::cuda
