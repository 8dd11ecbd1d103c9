// SPDX-License-Identifier: Apache-2.0
// Matrix products on cuBLASLt: descriptors, layouts and algorithm are chosen once.
#pragma once

#include <cublasLt.h>

#include <cstdint>
#include <map>
#include <optional>

#include "crossover/tensor.h"
#include "plan.h"
#include "runtime.h"

namespace crossover::cuda {

/// The library's handle, and the algorithm that its heuristic takes for each form of product.
class ProductLibrary {
 public:
  /// f32 multiplies in full single precision; tf32 rounds factors to 10 bits of mantissa. Sums are
  /// f32 in any precision.
  ProductLibrary(Precision precision, std::int64_t workspace_bytes);

  [[nodiscard]] bool supports(const ProductForm& form);

  [[nodiscard]] cublasLtHandle_t handle() const { return handle_.get(); }
  [[nodiscard]] cublasComputeType_t compute_type() const { return compute_type_; }

  /// None where the library has no algorithm for the form.
  const std::optional<cublasLtMatmulAlgo_t>& algorithm(const ProductForm& form);

 private:
  [[nodiscard]] std::optional<cublasLtMatmulAlgo_t> find_algorithm(const ProductForm& form) const;

  Owner<cublasLtHandle_t, &cublasLtDestroy> handle_;
  cublasComputeType_t compute_type_;
  std::int64_t workspace_bytes_;
  std::map<ProductForm, std::optional<cublasLtMatmulAlgo_t>> algorithms_;
};

/// A form as cuBLASLt is told of it. `vector` is the bias that is read or the bias gradient that is
/// written.
class ProductDescription {
 public:
  ProductDescription(const ProductForm& form, cublasComputeType_t compute_type, const void* vector,
                     const void* mask);

  [[nodiscard]] cublasLtMatmulDesc_t operation() const { return operation_.get(); }
  [[nodiscard]] cublasLtMatrixLayout_t a() const { return a_.get(); }
  [[nodiscard]] cublasLtMatrixLayout_t b() const { return b_.get(); }
  [[nodiscard]] cublasLtMatrixLayout_t d() const { return d_.get(); }

 private:
  using Layout = Owner<cublasLtMatrixLayout_t, &cublasLtMatrixLayoutDestroy>;
  static Layout make_layout(Type type, std::int64_t rows, std::int64_t columns);
  template <class T>
  void set(cublasLtMatmulDescAttributes_t attribute, const T& value);

  Owner<cublasLtMatmulDesc_t, &cublasLtMatmulDescDestroy> operation_;
  Layout a_, b_, d_;
};

class Product {
 public:
  /// Throws Unsupported where the library has no algorithm.
  Product(ProductLibrary& library, const ProductForm& form, const void* vector, const void* mask);

  void execute(cudaStream_t stream, const void* a, const void* b, void* d, void* workspace,
               std::int64_t workspace_bytes) const;

 private:
  cublasLtHandle_t handle_;
  ProductDescription description_;
  cublasLtMatmulAlgo_t algorithm_{};
  float beta_;
};

}  // namespace crossover::cuda
