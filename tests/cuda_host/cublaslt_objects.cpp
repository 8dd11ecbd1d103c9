// SPDX-License-Identifier: Apache-2.0
// cuBLASLt's handle, descriptors, layouts and preferences.
#include <cstring>

#include "cublaslt.h"
#include "memory.h"

using namespace cuda_host;

namespace cuda_host {

CublasLt& cublaslt() {
  static CublasLt only;
  return only;
}

void forget_cublaslt() { cublaslt() = CublasLt{}; }

cublasStatus_t enter_library(const char* function) {
  switch (enter(function)) {
    case cudaSuccess:
      return CUBLAS_STATUS_SUCCESS;
    case cudaErrorMemoryAllocation:
      return CUBLAS_STATUS_ALLOC_FAILED;
    case cudaErrorInvalidValue:
      return CUBLAS_STATUS_INVALID_VALUE;
    case cudaErrorNotSupported:
      return CUBLAS_STATUS_NOT_SUPPORTED;
    case cudaErrorLaunchFailure:
      return CUBLAS_STATUS_EXECUTION_FAILED;
    default:
      return CUBLAS_STATUS_INTERNAL_ERROR;
  }
}

}  // namespace cuda_host

namespace {

template <class T, class Registry>
cublasStatus_t make(const char* function, Registry& registry, std::int64_t Live::*counter,
                    T** handle) {
  if (const cublasStatus_t status = enter_library(function)) {
    return status;
  }
  *handle = registry.make(counter);
  return CUBLAS_STATUS_SUCCESS;
}

template <class T, class Registry>
cublasStatus_t destroy(const char* function, Registry& registry, std::int64_t Live::*counter,
                       T* handle) {
  const cublasStatus_t status = enter_library(function);
  const bool found = registry.destroy(handle, counter);
  return status != CUBLAS_STATUS_SUCCESS || found ? status : CUBLAS_STATUS_INVALID_VALUE;
}

template <class T>
cublasStatus_t set(T& to, const void* from, std::size_t bytes) {
  if (from == nullptr || bytes != sizeof(T)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  std::memcpy(&to, from, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

std::size_t cublasLtGetVersion() { return 130000; }
/// Of those that enter_library() gives.
const char* cublasLtGetStatusString(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED:
      return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_INTERNAL_ERROR:
      return "CUBLAS_STATUS_INTERNAL_ERROR";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    case CUBLAS_STATUS_SUCCESS:
      break;
  }
  return "CUBLAS_STATUS_SUCCESS";
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  if (state().device.busy != cudaSuccess || free_device_bytes() < state().device.library_bytes) {
    return CUBLAS_STATUS_NOT_INITIALIZED;
  }
  return make("cublasLtCreate", cublaslt().handles, &Live::handles, handle);
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  return destroy("cublasLtDestroy", cublaslt().handles, &Live::handles, handle);
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* desc, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  const cublasStatus_t status =
      make("cublasLtMatmulDescCreate", cublaslt().descriptors, &Live::descriptors, desc);
  if (status == CUBLAS_STATUS_SUCCESS) {
    (*desc)->compute = compute;
    (*desc)->scale = scale;
  }
  return status;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  return destroy("cublasLtMatmulDescDestroy", cublaslt().descriptors, &Live::descriptors, desc);
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* from, std::size_t bytes) {
  if (const cublasStatus_t status = enter_library("cublasLtMatmulDescSetAttribute")) {
    return status;
  }
  if (!cublaslt().descriptors.has(desc)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return set(desc->transpose_a, from, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return set(desc->transpose_b, from, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return set(desc->epilogue, from, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return set(desc->bias, from, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
      return set(desc->aux, from, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
      return set(desc->aux_ld, from, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE:
      return set(desc->bias_stride, from, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE:
      return set(desc->aux_stride, from, bytes);
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType_t type,
                                          std::uint64_t rows, std::uint64_t cols, std::int64_t ld) {
  const cublasStatus_t status =
      make("cublasLtMatrixLayoutCreate", cublaslt().layouts, &Live::layouts, layout);
  if (status == CUBLAS_STATUS_SUCCESS) {
    **layout = {type, static_cast<std::int64_t>(rows), static_cast<std::int64_t>(cols), ld};
  }
  return status;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void* from, std::size_t bytes) {
  if (const cublasStatus_t status = enter_library("cublasLtMatrixLayoutSetAttribute")) {
    return status;
  }
  if (!cublaslt().layouts.has(layout)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  return attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT ? set(layout->batch, from, bytes)
                                                         : set(layout->stride, from, bytes);
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  return destroy("cublasLtMatrixLayoutDestroy", cublaslt().layouts, &Live::layouts, layout);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  return make("cublasLtMatmulPreferenceCreate", cublaslt().preferences, &Live::preferences,
              preference);
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return destroy("cublasLtMatmulPreferenceDestroy", cublaslt().preferences, &Live::preferences,
                 preference);
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* from, std::size_t bytes) {
  if (const cublasStatus_t status = enter_library("cublasLtMatmulPreferenceSetAttribute")) {
    return status;
  }
  if (!cublaslt().preferences.has(preference)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
      return set(preference->workspace_bytes, from, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
      return set(preference->alignment[0], from, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
      return set(preference->alignment[1], from, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
      return set(preference->alignment[2], from, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
      return set(preference->alignment[3], from, bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
      return set(preference->reductions, from, bytes);
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}
