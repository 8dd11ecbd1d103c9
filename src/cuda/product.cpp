// SPDX-License-Identifier: Apache-2.0
#include "product.h"

#include <algorithm>
#include <cstddef>

#include "crossover/backend.h"
#include "crossover/memory.h"

namespace crossover::cuda {
namespace {

using Preference = Owner<cublasLtMatmulPreference_t, &cublasLtMatmulPreferenceDestroy>;

cublasLtEpilogue_t epilogue_of(const ProductForm& form) {
  switch (form.epilogue) {
    case Epilogue::none:
      return CUBLASLT_EPILOGUE_DEFAULT;
    case Epilogue::bias:
      return CUBLASLT_EPILOGUE_BIAS;
    case Epilogue::relu:
      return CUBLASLT_EPILOGUE_RELU;
    case Epilogue::relu_bias:
      return CUBLASLT_EPILOGUE_RELU_BIAS;
    case Epilogue::relu_mask:
      return CUBLASLT_EPILOGUE_RELU_AUX;
    case Epilogue::relu_mask_bias:
      return CUBLASLT_EPILOGUE_RELU_AUX_BIAS;
    case Epilogue::drelu:
      return CUBLASLT_EPILOGUE_DRELU;
    case Epilogue::drelu_bias_sum:
      return CUBLASLT_EPILOGUE_DRELU_BGRAD;
    case Epilogue::b_sum:
      return CUBLASLT_EPILOGUE_BGRADB;
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}

cudaDataType_t data_type(Type type) {
  switch (type) {
    case Type::bf16:
      return CUDA_R_16BF;
    case Type::f16:
      return CUDA_R_16F;
    case Type::f32:
    case Type::i32:  // which no product takes
      break;
  }
  return CUDA_R_32F;
}

Preference make_preference(const ProductForm& form, std::int64_t workspace_bytes) {
  cublasLtMatmulPreference_t created = nullptr;
  CROSSOVER_CUDA_CHECK(cublasLtMatmulPreferenceCreate(&created));
  Preference preference(created);
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
    CROSSOVER_CUDA_CHECK(
        cublasLtMatmulPreferenceSetAttribute(preference.get(), attribute, &value, sizeof value));
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<std::uint64_t>(workspace_bytes));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, static_cast<std::uint32_t>(form.alignment_a));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, static_cast<std::uint32_t>(form.alignment_b));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, static_cast<std::uint32_t>(form.alignment_d));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, static_cast<std::uint32_t>(form.alignment_d));
  return preference;
}

cublasLtHandle_t make_handle() {
  cublasLtHandle_t handle = nullptr;
  CROSSOVER_CUDA_CHECK(cublasLtCreate(&handle));
  return handle;
}

}  // namespace

std::string missing_for_products(const cudaDeviceProp& device, Precision precision) {
  constexpr int first_with_f16 = 7;
  constexpr int first_with_bf16_and_tf32 = 8;
  const int needed = precision == Precision::f32   ? 0
                     : precision == Precision::f16 ? first_with_f16
                                                   : first_with_bf16_and_tf32;
  if (device.major >= needed) {
    return "";
  }
  return std::string(static_cast<const char*>(device.name)) + " has no products in " +
         to_string(precision) + ": they came with compute capability " + std::to_string(needed) +
         ".0";
}

ProductLibrary::ProductLibrary(Precision precision, std::int64_t workspace_bytes,
                               int most_candidates)
    : handle_(make_handle()),
      compute_type_(precision == Precision::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                 : CUBLAS_COMPUTE_32F),
      workspace_bytes_(workspace_bytes),
      most_candidates_(most_candidates) {}

bool ProductLibrary::supports(const ProductForm& form) { return !candidates(form).empty(); }

const ProductLibrary::Algorithms& ProductLibrary::candidates(const ProductForm& form) {
  const auto at = algorithms_.find(form);
  return at != algorithms_.end() ? at->second : algorithms_[form] = find_algorithms(form);
}

void ProductLibrary::keep(const ProductForm& form, std::size_t candidate) {
  Algorithms& all = algorithms_.at(form);
  all = {all.at(candidate)};
}

ProductLibrary::Algorithms ProductLibrary::find_algorithms(const ProductForm& form) const {
  // The heuristic reads the alignment of these two addresses and nothing behind them; what will lie
  // there has no address yet.
  constexpr auto aligned = static_cast<std::uintptr_t>(MemoryPlan::alignment);
  const void* somewhere =
      reinterpret_cast<const void*>(aligned);  // NOLINT(performance-no-int-to-ptr)
  const ProductDescription description(form, compute_type_, somewhere, somewhere);
  const Preference preference = make_preference(form, workspace_bytes_);
  std::vector<cublasLtMatmulHeuristicResult_t> results(static_cast<std::size_t>(most_candidates_));
  int found = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      handle_.get(), description.operation(), description.a(), description.b(), description.d(),
      description.d(), preference.get(), most_candidates_, results.data(), &found);
  // Both mean that there is none; which of them comes depends on the epilogue.
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE) {
    return {};
  }
  CROSSOVER_CUDA_CHECK(status);
  results.resize(static_cast<std::size_t>(found));
  Algorithms algorithms;
  for (const cublasLtMatmulHeuristicResult_t& result : results) {
    if (result.state == CUBLAS_STATUS_SUCCESS) {
      algorithms.push_back(result.algo);
    }
  }
  return algorithms;
}

ProductDescription::Layout ProductDescription::make_layout(Type type, std::int64_t rows,
                                                           std::int64_t columns) {
  cublasLtMatrixLayout_t layout = nullptr;
  CROSSOVER_CUDA_CHECK(cublasLtMatrixLayoutCreate(&layout, data_type(type),
                                                  static_cast<std::uint64_t>(rows),
                                                  static_cast<std::uint64_t>(columns), rows));
  return Layout(layout);
}

template <class T>
void ProductDescription::set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
  CROSSOVER_CUDA_CHECK(
      cublasLtMatmulDescSetAttribute(operation_.get(), attribute, &value, sizeof value));
}

ProductDescription::ProductDescription(const ProductForm& form, cublasComputeType_t compute_type,
                                       const void* vector, const void* mask)
    : a_(form.transpose_a ? make_layout(form.factors, form.k, form.m)
                          : make_layout(form.factors, form.m, form.k)),
      b_(form.transpose_b ? make_layout(form.factors, form.n, form.k)
                          : make_layout(form.factors, form.k, form.n)),
      d_(make_layout(form.result, form.m, form.n)) {
  cublasLtMatmulDesc_t operation = nullptr;
  CROSSOVER_CUDA_CHECK(cublasLtMatmulDescCreate(&operation, compute_type, CUDA_R_32F));
  operation_ = Owner<cublasLtMatmulDesc_t, &cublasLtMatmulDescDestroy>(operation);
  set(CUBLASLT_MATMUL_DESC_TRANSA, form.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_TRANSB, form.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(form));
  if (reads_vector(form.epilogue) || writes_vector(form.epilogue)) {
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, vector);
  }
  if (uses_mask(form.epilogue)) {
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, mask);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, mask_leading(form.m));
  }
}

Product::Product(ProductLibrary& library, const ProductForm& form, const void* vector,
                 const void* mask, std::size_t candidate)
    : handle_(library.handle()),
      description_(form, library.compute_type(), vector, mask),
      beta_(form.accumulate ? 1.0F : 0.0F) {
  const ProductLibrary::Algorithms& algorithms = library.candidates(form);
  if (candidate >= algorithms.size()) {
    throw Unsupported("cuBLASLt has no algorithm for " + to_string(form));
  }
  algorithm_ = algorithms[candidate];
}

void Product::execute(cudaStream_t stream, const void* a, const void* b, void* d, void* workspace,
                      std::int64_t workspace_bytes) const {
  const float alpha = 1;
  CROSSOVER_CUDA_CHECK(cublasLtMatmul(handle_, description_.operation(), &alpha, a,
                                      description_.a(), b, description_.b(), &beta_, d,
                                      description_.d(), d, description_.d(), &algorithm_, workspace,
                                      static_cast<std::size_t>(workspace_bytes), stream));
}

}  // namespace crossover::cuda
