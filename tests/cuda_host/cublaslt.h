// SPDX-License-Identifier: Apache-2.0
// cuBLASLt's descriptors as the emulation keeps them.
#pragma once

#include <cublasLt.h>

#include "streams.h"

struct cublasLtContext {};

struct cublasLtMatmulDescOpaque_t {
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  cudaDataType_t scale = CUDA_R_32F;
  cublasOperation_t transpose_a = CUBLAS_OP_N, transpose_b = CUBLAS_OP_N;
  std::uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  void* bias = nullptr;
  void* aux = nullptr;
  std::int64_t aux_ld = 0;                       ///< bits
  std::int64_t bias_stride = 0, aux_stride = 0;  ///< in a batch: elements and bits
};

struct cublasLtMatrixLayoutOpaque_t {
  cudaDataType_t type = CUDA_R_32F;
  std::int64_t rows = 0, cols = 0, ld = 0;
  std::int32_t batch = 1;
  std::int64_t stride = 0;  ///< elements
};

struct cublasLtMatmulPreferenceOpaque_t {
  std::uint64_t workspace_bytes = 0;
  std::uint32_t alignment[4] = {256, 256, 256, 256};  ///< of A, B, C, D
  std::uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_MASK;
};

namespace cuda_host {

struct CublasLt {
  Registry<cublasLtContext> handles;
  Registry<cublasLtMatmulDescOpaque_t> descriptors;
  Registry<cublasLtMatrixLayoutOpaque_t> layouts;
  Registry<cublasLtMatmulPreferenceOpaque_t> preferences;
};
CublasLt& cublaslt();

/// As enter(), in the library's own words.
cublasStatus_t enter_library(const char* function);

/// A product in the library's terms, all of it by value: D [m, n] = op(A) op(B), column-major.
struct Product {
  cublasLtMatmulDescOpaque_t desc;
  cublasLtMatrixLayoutOpaque_t a, b, c, d;
  std::int64_t m = 0, n = 0, k = 0;

  [[nodiscard]] bool has(unsigned bits) const { return (desc.epilogue & bits) == bits; }
  [[nodiscard]] bool has_mask() const { return has(128); }
  [[nodiscard]] bool has_vector() const {
    return has(CUBLASLT_EPILOGUE_BIAS) || has(16) || has(CUBLASLT_EPILOGUE_BGRADB);
  }
  /// The bias, or the bias gradient, has the type of D. Its length, or of the bias gradient.
  [[nodiscard]] std::int64_t vector_length() const { return has(CUBLASLT_EPILOGUE_BGRADB) ? n : m; }
};

/// The product, or the status that asking for it gives.
cublasStatus_t describe(Product* product, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
                        cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                        cublasLtMatrixLayout_t d);

/// The largest power of two, up to 256, that divides the address; 256 for null.
std::uint64_t alignment_of(const void* address);

/// What cublasLtMatmulAlgo_t::data holds: which product an algorithm was found for.
std::uint64_t fingerprint(const Product& product);

struct Operands {
  float alpha = 1, beta = 0;
  const void* a = nullptr;
  const void* b = nullptr;
  const void* c = nullptr;
  void* d = nullptr;
};
std::size_t bytes_of(cudaDataType_t type);

/// The arithmetic: in double, rounded once to the type of D; what tf32 does with A and B before,
/// and what relu's mask says of 0, the device tells.
void multiply(const Product& product, const Operands& operands);

void forget_cublaslt();

}  // namespace cuda_host
