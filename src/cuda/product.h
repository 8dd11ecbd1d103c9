// SPDX-License-Identifier: Apache-2.0
// Matrix products on cuBLASLt: descriptors, layouts and algorithm are chosen once.
#pragma once

#include <cublasLt.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "crossover/tensor.h"
#include "plan.h"
#include "runtime.h"

namespace crossover::cuda {

/// What the device lacks for products of that precision, in words; empty where it has them.
std::string missing_for_products(const cudaDeviceProp& device, Precision precision);

/// The library's handle, and the algorithms that its heuristic proposes for each form of product.
class ProductLibrary {
 public:
  /// f32 multiplies in full single precision; tf32 rounds factors to 10 bits of mantissa. Sums are
  /// f32 in any precision. At most so many candidates are kept for a form.
  ProductLibrary(Precision precision, std::int64_t workspace_bytes, int most_candidates = 1);

  [[nodiscard]] bool supports(const ProductForm& form);

  [[nodiscard]] cublasLtHandle_t handle() const { return handle_.get(); }
  [[nodiscard]] cublasComputeType_t compute_type() const { return compute_type_; }

  using Algorithms = std::vector<cublasLtMatmulAlgo_t>;

  /// The heuristic's best guess first; none where the library has no algorithm for the form.
  const Algorithms& candidates(const ProductForm& form);

  /// Drops all other candidates for the form.
  void keep(const ProductForm& form, std::size_t candidate);

 private:
  [[nodiscard]] Algorithms find_algorithms(const ProductForm& form) const;

  Owner<cublasLtHandle_t, &cublasLtDestroy> handle_;
  cublasComputeType_t compute_type_;
  std::int64_t workspace_bytes_;
  int most_candidates_;
  std::map<ProductForm, Algorithms> algorithms_;
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
  /// Throws Unsupported where the library has no such candidate.
  Product(ProductLibrary& library, const ProductForm& form, const void* vector, const void* mask,
          std::size_t candidate = 0);

  void execute(cudaStream_t stream, const void* a, const void* b, void* d, void* workspace,
               std::int64_t workspace_bytes) const;

 private:
  cublasLtHandle_t handle_;
  ProductDescription description_;
  cublasLtMatmulAlgo_t algorithm_{};
  float beta_;
};

}  // namespace crossover::cuda
