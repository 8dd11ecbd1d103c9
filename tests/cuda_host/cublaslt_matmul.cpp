// SPDX-License-Identifier: Apache-2.0
// cuBLASLt's heuristic and its matrix product: what they accept, and what they put into the queue.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <tuple>
#include <type_traits>

#include "cublaslt.h"
#include "memory.h"
#include "ranges.h"

using namespace cuda_host;

namespace cuda_host {

std::uint64_t alignment_of(const void* address) {
  const auto number = reinterpret_cast<std::uintptr_t>(address);
  std::uint64_t alignment = 256;
  while (number % alignment != 0) {
    alignment /= 2;
  }
  return alignment;
}

std::size_t bytes_of(cudaDataType_t type) { return type == CUDA_R_32F ? 4 : 2; }

namespace {

/// The rows of the manual's table for sums in f32 that are emulated.
bool is_type_combination(const Product& product) {
  const cudaDataType_t factors = product.a.type;
  const cudaDataType_t result = product.d.type;
  const bool is_tf32 = product.desc.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  if (product.b.type != factors || product.c.type != result) {
    return false;
  }
  return result == CUDA_R_32F ? factors == CUDA_R_32F || !is_tf32 : result == factors && !is_tf32;
}

}  // namespace

cublasStatus_t describe(Product* product, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
                        cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                        cublasLtMatrixLayout_t d) {
  const auto& layouts = cublaslt().layouts;
  if (!cublaslt().descriptors.has(desc) || !layouts.has(a) || !layouts.has(b) || !layouts.has(c) ||
      !layouts.has(d)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  *product = {.desc = *desc, .a = *a, .b = *b, .c = *c, .d = *d};
  const bool ta = desc->transpose_a != CUBLAS_OP_N;
  const bool tb = desc->transpose_b != CUBLAS_OP_N;
  product->m = ta ? a->cols : a->rows;
  product->n = tb ? b->rows : b->cols;
  product->k = ta ? a->rows : a->cols;
  if ((tb ? b->cols : b->rows) != product->k || d->rows != product->m || d->cols != product->n ||
      c->rows != d->rows || c->cols != d->cols) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  for (const auto* layout : {a, b, c, d}) {
    if (layout->rows < 1 || layout->cols < 1 || layout->ld < layout->rows || layout->batch < 1 ||
        layout->batch != d->batch) {
      return CUBLAS_STATUS_INVALID_VALUE;
    }
  }
  if (!is_type_combination(*product)) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  if (desc->scale != CUDA_R_32F) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  if (product->has_mask() &&
      (desc->aux_ld % 128 != 0 || desc->aux_ld < product->m || desc->aux_stride % 128 != 0)) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  return CUBLAS_STATUS_SUCCESS;
}

std::uint64_t fingerprint(const Product& product) {
  std::uint64_t hash = 14695981039346656037U;  // FNV-1a
  for (const std::int64_t value : {product.m,
                                   product.n,
                                   product.k,
                                   product.a.ld,
                                   product.b.ld,
                                   product.c.ld,
                                   product.d.ld,
                                   product.desc.aux_ld,
                                   std::int64_t{product.desc.epilogue},
                                   std::int64_t{product.d.batch},
                                   product.a.stride,
                                   product.b.stride,
                                   product.d.stride,
                                   product.desc.bias_stride,
                                   product.desc.aux_stride,
                                   std::int64_t{product.desc.transpose_a},
                                   std::int64_t{product.desc.transpose_b},
                                   std::int64_t{product.desc.compute},
                                   std::int64_t{product.a.type},
                                   std::int64_t{product.d.type}}) {
    hash = (hash ^ static_cast<std::uint64_t>(value)) * 1099511628211U;
  }
  return hash;
}

}  // namespace cuda_host

namespace {

constexpr std::uint64_t signature = 0x63756461686f7374U;

/// The fields of cublasLtMatmulAlgo_t::data.
enum Field {
  magic,
  product_of,
  align_a,
  align_b,
  align_c,
  align_d,
  align_vector,
  number_of,  ///< place in algorithm_workspaces; above it parts of the sum, and their reduction
};
constexpr unsigned parts_at = 8;
constexpr unsigned reduction_at = 16;
constexpr std::uint64_t byte_mask = 0xff;

std::size_t number(const cublasLtMatmulAlgo_t& algo) { return algo.data[number_of] & byte_mask; }
std::uint64_t parts(const cublasLtMatmulAlgo_t& algo) {
  return algo.data[number_of] >> parts_at & byte_mask;
}

/// Bytes that each algorithm works in, as one that splits the sums would. All calculate alike.
constexpr std::array<std::uint64_t, 4> algorithm_workspaces{4096, 0, 65536, 1U << 30U};
static_assert(algorithm_workspaces.size() ==
              std::tuple_size_v<decltype(Device::product_microseconds)>);

/// The same place in the i-th of a batch.
template <class T>
T* moved(T* at, std::int64_t stride_bytes, std::size_t i) {
  using Byte = std::conditional_t<std::is_const_v<T>, const std::byte, std::byte>;
  return at == nullptr ? at : static_cast<Byte*>(at) + stride_bytes * static_cast<std::int64_t>(i);
}

std::int64_t stride_bytes(const cublasLtMatrixLayoutOpaque_t& layout) {
  return layout.stride * static_cast<std::int64_t>(cuda_host::bytes_of(layout.type));
}

Product of_batch(Product product, std::size_t i) {
  auto& desc = product.desc;
  const auto element = static_cast<std::int64_t>(cuda_host::bytes_of(product.d.type));
  desc.bias = moved(desc.bias, desc.bias_stride * element, i);
  desc.aux = moved(desc.aux, desc.aux_stride / 8, i);
  return product;
}

Operands of_batch(Operands operands, const Product& product, std::size_t i) {
  operands.a = moved(operands.a, stride_bytes(product.a), i);
  operands.b = moved(operands.b, stride_bytes(product.b), i);
  operands.c = moved(operands.c, stride_bytes(product.c), i);
  operands.d = moved(operands.d, stride_bytes(product.d), i);
  return operands;
}

std::size_t bytes_of(const cublasLtMatrixLayoutOpaque_t& layout) {
  return static_cast<std::size_t>((layout.cols - 1) * layout.ld + layout.rows) *
         cuda_host::bytes_of(layout.type);
}

std::uint64_t promised(const cublasLtMatmulDescOpaque_t& desc) {
  return std::min(alignment_of(desc.bias), alignment_of(desc.aux));
}

/// The parts of a sum lie there in f32.
std::size_t workspace_of(const cublasLtMatmulAlgo_t& algo, const Product& product) {
  return algorithm_workspaces.at(number(algo)) +
         parts(algo) * static_cast<std::size_t>(product.m * product.n * product.d.batch) *
             sizeof(float);
}

bool fits(const cublasLtMatmulAlgo_t& algo, const Product& product, const Operands& operands,
          const void* workspace, std::size_t workspace_bytes) {
  const auto& data = algo.data;
  return data[magic] == signature && data[product_of] == fingerprint(product) &&
         alignment_of(operands.a) >= data[align_a] && alignment_of(operands.b) >= data[align_b] &&
         alignment_of(operands.c) >= data[align_c] && alignment_of(operands.d) >= data[align_d] &&
         promised(product.desc) >= data[align_vector] &&
         (workspace_of(algo, product) == 0 ||
          (workspace != nullptr && workspace_bytes >= workspace_of(algo, product) &&
           alignment_of(workspace) >= 256));  // as the manual demands
}

}  // namespace

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int requested,
                                              cublasLtMatmulHeuristicResult_t* results,
                                              int* returned) {
  if (const cublasStatus_t status = enter_library("cublasLtMatmulAlgoGetHeuristic")) {
    return status;
  }
  *returned = 0;
  if (!cublaslt().handles.has(handle) || !cublaslt().preferences.has(preference) || requested < 1) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  Product product;
  if (const cublasStatus_t status = describe(&product, desc, a, b, c, d)) {
    return status;
  }
  if ((state().device.refused_epilogues & product.desc.epilogue) != 0 &&
      product.desc.epilogue != CUBLASLT_EPILOGUE_DEFAULT) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  const bool is_odd = (product.a.ld | product.b.ld | product.c.ld | product.d.ld) % 2 != 0;
  if (state().device.no_odd_16_bits && product.a.type != CUDA_R_32F && is_odd) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  const cudaDataType_t types[] = {product.a.type, product.b.type, product.c.type, product.d.type};
  for (std::size_t i = 0; i < std::size(types); ++i) {
    if (preference->alignment[i] < cuda_host::bytes_of(types[i])) {
      return CUBLAS_STATUS_NOT_SUPPORTED;
    }
  }
  if (cuda_host::bytes_of(product.d.type) == 2 &&
      (preference->reductions & ~unsigned{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE}) != 0) {
    violation("a product is allowed to round parts of its sums to 16 bits");
  }
  for (std::size_t which = 0; which < algorithm_workspaces.size(); ++which) {
    const std::uint64_t workspace = algorithm_workspaces[which];
    if (workspace > preference->workspace_bytes || *returned == requested) {
      continue;
    }
    cublasLtMatmulHeuristicResult_t& result = results[(*returned)++];
    result = {.state = CUBLAS_STATUS_SUCCESS};
    result.workspaceSize = workspace;
    result.wavesCount = 1;
    auto& data = result.algo.data;
    data[magic] = signature;
    data[product_of] = fingerprint(product);
    std::copy(std::begin(preference->alignment), std::end(preference->alignment), data + align_a);
    data[align_vector] = promised(product.desc);
    data[number_of] = which;
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoConfigSetAttribute(cublasLtMatmulAlgo_t* algo,
                                                    cublasLtMatmulAlgoConfigAttributes_t attribute,
                                                    const void* from, std::size_t bytes) {
  std::uint32_t value = 0;
  if (bytes != sizeof value) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  std::memcpy(&value, from, bytes);
  const unsigned at = attribute == CUBLASLT_ALGO_CONFIG_SPLITK_NUM ? parts_at : reduction_at;
  algo->data[number_of] = (algo->data[number_of] & ~(byte_mask << at)) | std::uint64_t{value} << at;
  return CUBLAS_STATUS_SUCCESS;
}

/// The second algorithm splits no sums.
cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                       cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                       cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t* algo,
                                       cublasLtMatmulHeuristicResult_t* result) {
  if (const cublasStatus_t status = enter_library("cublasLtMatmulAlgoCheck")) {
    return status;
  }
  Product product;
  if (const cublasStatus_t status = describe(&product, desc, a, b, c, d)) {
    return status;
  }
  if (!cublaslt().handles.has(handle) || algo->data[product_of] != fingerprint(product)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (parts(*algo) > 1 && number(*algo) == 1) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  if (parts(*algo) > 1 &&
      algo->data[number_of] >> reduction_at != CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE) {
    violation("a product is allowed to add parts of its sums in another type than f32");
  }
  *result = {.state = CUBLAS_STATUS_SUCCESS};
  result->workspaceSize = workspace_of(*algo, product);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                              cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                              cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algo,
                              void* workspace, std::size_t workspace_bytes,
                              cudaStream_t stream_handle) {
  if (const cublasStatus_t status = enter_library("cublasLtMatmul")) {
    return status;
  }
  CUstream_st* stream = find_stream(stream_handle);
  if (!cublaslt().handles.has(handle) || alpha == nullptr || beta == nullptr || a == nullptr ||
      b == nullptr || d == nullptr || stream == nullptr || algo == nullptr) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  Product product;
  if (const cublasStatus_t status =
          describe(&product, desc, a_layout, b_layout, c_layout, d_layout)) {
    return status;
  }
  if ((product.has_vector() && desc->bias == nullptr) ||
      (product.has_mask() && (desc->aux == nullptr || alignment_of(desc->aux) < 16))) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  Operands operands{.alpha = *static_cast<const float*>(alpha),
                    .beta = *static_cast<const float*>(beta),
                    .a = a,
                    .b = b,
                    .c = c,
                    .d = d};
  if (operands.beta != 0 && (c == nullptr || (c == d && product.c.ld != product.d.ld))) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (!fits(*algo, product, operands, workspace, workspace_bytes)) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  const std::size_t which = number(*algo);
  const bool is_split = parts(*algo) > 1;
  if ((state().device.failing_algorithms >> which & 1U) != 0) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  ++state().products_by_algorithm[is_split ? algorithm_workspaces.size() : which];
  const std::size_t scribbled = workspace_of(*algo, product);
  const auto batch = static_cast<std::size_t>(product.d.batch);
  const auto matrix = [&](const char* name, const void* at, const auto& layout, bool written) {
    return Range{name,    at,    bytes_of(layout),
                 written, batch, static_cast<std::size_t>(stride_bytes(layout))};
  };
  std::vector<Range> ranges{matrix("A", a, product.a, false), matrix("B", b, product.b, false),
                            matrix("D", d, product.d, true)};
  if (operands.beta != 0) {
    ranges.push_back(matrix("C", c, product.c, false));
  }
  if (product.has_vector()) {
    const std::size_t bytes = cuda_host::bytes_of(product.d.type);
    ranges.push_back({"the bias", desc->bias,
                      static_cast<std::size_t>(product.vector_length()) * bytes,
                      !product.has(CUBLASLT_EPILOGUE_BIAS), batch,
                      static_cast<std::size_t>(desc->bias_stride) * bytes});
  }
  if (product.has_mask()) {
    ranges.push_back({"the bit mask", desc->aux,
                      static_cast<std::size_t>(product.desc.aux_ld * product.n / 8),
                      product.has(CUBLASLT_EPILOGUE_RELU), batch,
                      static_cast<std::size_t>(desc->aux_stride / 8)});
  }
  if (scribbled > 0) {
    ranges.push_back({"the workspace", workspace, scribbled, true});
  }
  if (const std::string what = fault(ranges); !what.empty()) {
    violation("in a matrix product, " + what);
    fail_context(cudaErrorIllegalAddress);
    return CUBLAS_STATUS_SUCCESS;  // as on a device: a later call tells
  }
  std::vector<const void*> addresses;
  for (const Range& range : ranges) {
    addresses.push_back(range.from);
  }
  Work work{.what = "matrix product",
            .run = {},
            .blocks = blocks_of(addresses),
            .microseconds = is_split ? state().device.split_microseconds
                                     : state().device.product_microseconds.at(which)};
  const std::size_t products = batch > 1 && is_forgetful() ? 1 : batch;
  work.run = [=] {
    if (scribbled > 0) {
      std::memset(workspace, 0xff, scribbled);
    }
    for (std::size_t i = 0; i < products; ++i) {
      multiply(of_batch(product, i), of_batch(operands, product, i));
    }
  };
  return enqueue(*stream, std::move(work)) == cudaSuccess ? CUBLAS_STATUS_SUCCESS
                                                          : CUBLAS_STATUS_EXECUTION_FAILED;
}
