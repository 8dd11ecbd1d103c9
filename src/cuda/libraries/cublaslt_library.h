// SPDX-License-Identifier: Apache-2.0
// Matrix products on cuBLASLt: descriptors, layouts and algorithm are chosen once.
#pragma once

#include <cublasLt.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "../backend/runtime.h"
#include "../planning/plan.h"
#include "crossover/tensor.h"
#include "library.h"

namespace crossover::cuda {

/// What the device lacks for products of that precision, in words; empty where it has them.
std::string missing_for_products(const cudaDeviceProp& device, Precision precision);

/// The library's handle, and the algorithms that its heuristic proposes for each form of product.
class CublasLtLibrary : public ProductLibrary {
 public:
  static constexpr int most_algorithms = 8;  ///< that are asked for, for each form

  /// f32 multiplies in full single precision; tf32 keeps 10 bits of a factor's mantissa. Sums are
  /// f32 in any precision.
  CublasLtLibrary(Precision precision, std::int64_t workspace_bytes);

  [[nodiscard]] int algorithms(const ProductForm& form) override;
  [[nodiscard]] std::unique_ptr<Product> make(const CalledProduct& of, int algorithm) override;

 private:
  using Found = std::vector<cublasLtMatmulAlgo_t>;
  [[nodiscard]] const Found& algorithms_for(const ProductForm& form);
  [[nodiscard]] Found find_algorithms(const ProductForm& form) const;

  Owner<cublasLtHandle_t, &cublasLtDestroy> handle_;
  cublasComputeType_t compute_type_;
  std::int64_t workspace_bytes_;
  std::map<ProductForm, Found> algorithms_;
};

/// With the workspace that programs have.
std::unique_ptr<ProductLibrary> make_cublaslt_library(Precision precision);

}  // namespace crossover::cuda
