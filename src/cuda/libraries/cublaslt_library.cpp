// SPDX-License-Identifier: Apache-2.0
// Descriptors, layouts and algorithm of a product are chosen once.
#include <cublasLt.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "../base/runtime.h"
#include "../plan/plan.h"
#include "crossover/backend.h"
#include "crossover/memory.h"
#include "library.h"

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
    case Type::i32:  // which no product takes, nor
    case Type::u8:
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
  if (bytes(form.result) < bytes(Type::f32)) {  // no parts of a sum that are rounded to 16 bits
    set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
        static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  }
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, static_cast<std::uint32_t>(form.alignment_a));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, static_cast<std::uint32_t>(form.alignment_b));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, static_cast<std::uint32_t>(form.alignment_d));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, static_cast<std::uint32_t>(form.alignment_d));
  return preference;
}

/// The library has no word for a full GPU here: it says that it is not initialized.
cublasLtHandle_t make_handle() {
  constexpr std::size_t enough = std::size_t{256} << 20;  // bytes, by far
  cublasLtHandle_t handle = nullptr;
  const cublasStatus_t status = cublasLtCreate(&handle);
  if (status == CUBLAS_STATUS_NOT_INITIALIZED) {
    std::size_t free = 0;
    std::size_t total = 0;
    CROSSOVER_CUDA_CHECK(cudaMemGetInfo(&free, &total));
    if (free < enough) {
      throw OutOfMemory("the GPU's memory does not hold cuBLASLt: " + std::to_string(free) +
                        " of " + std::to_string(total) + " bytes are free");
    }
  }
  CROSSOVER_CUDA_CHECK(status);
  return handle;
}

/// A form as cuBLASLt is told of it. `vector` is the bias that is read or the bias gradient that is
/// written.
class FormDescription {
 public:
  FormDescription(const ProductForm& form, cublasComputeType_t compute_type, const void* vector,
                  const void* mask)
      : a_(form.transpose_a ? make_layout(form.factors, form.k, form.m, form.networks)
                            : make_layout(form.factors, form.m, form.k, form.networks)),
        b_(form.transpose_b ? make_layout(form.factors, form.n, form.k, form.networks)
                            : make_layout(form.factors, form.k, form.n, form.networks)),
        d_(make_layout(form.result, form.m, form.n, form.networks)) {
    cublasLtMatmulDesc_t operation = nullptr;
    CROSSOVER_CUDA_CHECK(cublasLtMatmulDescCreate(&operation, compute_type, CUDA_R_32F));
    operation_ = Operation(operation);
    set(CUBLASLT_MATMUL_DESC_TRANSA, form.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, form.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(form));
    if (reads_vector(form.epilogue) || writes_vector(form.epilogue)) {
      set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, vector);
      if (form.networks.count > 1) {
        set(CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, form.networks.stride / bytes(form.result));
      }
    }
    if (uses_mask(form.epilogue)) {
      set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, mask);
      set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, mask_leading(form.m));
      if (form.networks.count > 1) {
        constexpr std::int64_t bits = 8;
        set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, form.networks.stride * bits);
      }
    }
  }

  [[nodiscard]] cublasLtMatmulDesc_t operation() const { return operation_.get(); }
  [[nodiscard]] cublasLtMatrixLayout_t a() const { return a_.get(); }
  [[nodiscard]] cublasLtMatrixLayout_t b() const { return b_.get(); }
  [[nodiscard]] cublasLtMatrixLayout_t d() const { return d_.get(); }

 private:
  using Operation = Owner<cublasLtMatmulDesc_t, &cublasLtMatmulDescDestroy>;
  using Layout = Owner<cublasLtMatrixLayout_t, &cublasLtMatrixLayoutDestroy>;

  static Layout make_layout(Type type, std::int64_t rows, std::int64_t columns,
                            const Networks& networks) {
    cublasLtMatrixLayout_t created = nullptr;
    CROSSOVER_CUDA_CHECK(cublasLtMatrixLayoutCreate(&created, data_type(type),
                                                    static_cast<std::uint64_t>(rows),
                                                    static_cast<std::uint64_t>(columns), rows));
    Layout layout(created);
    if (networks.count > 1) {
      const auto count = static_cast<std::int32_t>(networks.count);
      const std::int64_t stride = networks.stride / bytes(type);
      CROSSOVER_CUDA_CHECK(cublasLtMatrixLayoutSetAttribute(
          created, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count));
      CROSSOVER_CUDA_CHECK(cublasLtMatrixLayoutSetAttribute(
          created, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride));
    }
    return layout;
  }

  template <class T>
  void set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    CROSSOVER_CUDA_CHECK(
        cublasLtMatmulDescSetAttribute(operation_.get(), attribute, &value, sizeof value));
  }

  Operation operation_;
  Layout a_, b_, d_;
};

class CublasLtProduct : public Product {
 public:
  CublasLtProduct(cublasLtHandle_t handle, FormDescription description,
                  const cublasLtMatmulAlgo_t& algorithm, bool accumulate)
      : handle_(handle),
        description_(std::move(description)),
        algorithm_(algorithm),
        beta_(accumulate ? 1.0F : 0.0F) {}

  void execute(cudaStream_t stream, const CalledProduct& of,
               const Workspace& workspace) const override {
    const float alpha = 1;
    CROSSOVER_CUDA_CHECK(cublasLtMatmul(
        handle_, description_.operation(), &alpha, of.a, description_.a(), of.b, description_.b(),
        &beta_, of.d, description_.d(), of.d, description_.d(), &algorithm_, workspace.at,
        static_cast<std::size_t>(workspace.bytes), stream));
  }

 private:
  cublasLtHandle_t handle_;
  FormDescription description_;
  cublasLtMatmulAlgo_t algorithm_;
  float beta_;
};

/// The library's handle, and the algorithms that its heuristic proposes for each form of product.
class CublasLtLibrary : public ProductLibrary {
 public:
  static constexpr int most_algorithms = 8;  ///< that the heuristic is asked for, for each form

  CublasLtLibrary(Precision precision, std::int64_t workspace_bytes);

  [[nodiscard]] int algorithms(const ProductForm& form) override;
  [[nodiscard]] std::unique_ptr<Product> make(const CalledProduct& of, int algorithm) override;

 private:
  using Found = std::vector<cublasLtMatmulAlgo_t>;
  [[nodiscard]] const Found& algorithms_for(const ProductForm& form);
  [[nodiscard]] Found find_algorithms(const ProductForm& form) const;
  void add_split_sums(const ProductForm& form, const FormDescription& description,
                      Found& found) const;

  Owner<cublasLtHandle_t, &cublasLtDestroy> handle_;
  cublasComputeType_t compute_type_;
  std::int64_t workspace_bytes_;
  std::map<ProductForm, Found> algorithms_;
};

CublasLtLibrary::CublasLtLibrary(Precision precision, std::int64_t workspace_bytes)
    : handle_(make_handle()),
      compute_type_(precision == Precision::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                 : CUBLAS_COMPUTE_32F),
      workspace_bytes_(workspace_bytes) {}

int CublasLtLibrary::algorithms(const ProductForm& form) {
  return static_cast<int>(algorithms_for(form).size());
}

std::unique_ptr<Product> CublasLtLibrary::make(const CalledProduct& of, int algorithm) {
  return std::make_unique<CublasLtProduct>(
      handle_.get(), FormDescription(of.form, compute_type_, of.vector, of.mask),
      algorithms_for(of.form).at(static_cast<std::size_t>(algorithm)), of.form.accumulate);
}

const CublasLtLibrary::Found& CublasLtLibrary::algorithms_for(const ProductForm& form) {
  const auto at = algorithms_.find(form);
  return at != algorithms_.end() ? at->second : algorithms_[form] = find_algorithms(form);
}

CublasLtLibrary::Found CublasLtLibrary::find_algorithms(const ProductForm& form) const {
  // The heuristic reads the alignment of these two addresses and nothing behind them; what will lie
  // there has no address yet.
  constexpr auto aligned = static_cast<std::uintptr_t>(MemoryPlan::alignment);
  const void* aligned_address =
      reinterpret_cast<const void*>(aligned);  // NOLINT(performance-no-int-to-ptr)
  const FormDescription description(form, compute_type_, aligned_address, aligned_address);
  const Preference preference = make_preference(form, workspace_bytes_);
  std::vector<cublasLtMatmulHeuristicResult_t> results(most_algorithms);
  int found = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      handle_.get(), description.operation(), description.a(), description.b(), description.d(),
      description.d(), preference.get(), most_algorithms, results.data(), &found);
  // Both mean that there is none; which of them comes depends on the epilogue.
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE) {
    return {};
  }
  CROSSOVER_CUDA_CHECK(status);
  results.resize(static_cast<std::size_t>(found));
  Found algorithms;
  for (const cublasLtMatmulHeuristicResult_t& result : results) {
    if (result.state == CUBLAS_STATUS_SUCCESS) {
      algorithms.push_back(result.algo);
    }
  }
  add_split_sums(form, description, algorithms);
  return algorithms;
}

/// Of a long sum with few results, which leave most of a GPU idle: the heuristic's best guesses
/// with the sum in parts, which are added in f32 and in order. Behind all others, for those who
/// time.
void CublasLtLibrary::add_split_sums(const ProductForm& form, const FormDescription& description,
                                     Found& found) const {
  constexpr std::int64_t most_results = 132L * 128 * 128;  // a tile for each multiprocessor
  constexpr std::int64_t least_part = 128;
  constexpr std::size_t guesses = 2;
  const auto reduction = static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
  const std::size_t count = std::min(found.size(), guesses);
  const std::int64_t results = form.m * form.n * form.networks.count;
  for (std::size_t guess = 0; guess < count && results <= most_results; ++guess) {
    for (const std::int32_t parts : {2, 4, 8}) {
      cublasLtMatmulAlgo_t algorithm = found[guess];
      cublasLtMatmulHeuristicResult_t result{};
      const auto works = [](cublasStatus_t status) { return status == CUBLAS_STATUS_SUCCESS; };
      if (form.k / parts >= least_part &&
          works(cublasLtMatmulAlgoConfigSetAttribute(&algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM,
                                                     &parts, sizeof parts)) &&
          works(cublasLtMatmulAlgoConfigSetAttribute(
              &algorithm, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, &reduction, sizeof reduction)) &&
          works(cublasLtMatmulAlgoCheck(handle_.get(), description.operation(), description.a(),
                                        description.b(), description.d(), description.d(),
                                        &algorithm, &result)) &&
          result.workspaceSize <= static_cast<std::size_t>(workspace_bytes_)) {
        found.push_back(algorithm);
      }
    }
  }
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

std::unique_ptr<ProductLibrary> make_cublaslt_library(Precision precision) {
  return std::make_unique<CublasLtLibrary>(precision, workspace_for_products);
}

}  // namespace crossover::cuda
