// SPDX-License-Identifier: Apache-2.0
// What the emulated product refuses and finds. That its arithmetic is right, the operations show
// that are made of it, against the reference (EmulatedOperation, EmulatedTf32Factors).
#include <cublasLt.h>
#include <gmock/gmock.h>

#include "owners.h"

namespace cuda_host::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// D [2, 3] = A [2, 2] B [2, 3].
struct Multiplication {
  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDesc_t desc = nullptr;
  cublasLtMatrixLayout_t a_layout = nullptr, b_layout = nullptr, d_layout = nullptr;
  cublasLtMatmulPreference_t preference = nullptr;
  OnDevice<float> a{{1, 2, 3, 4}}, b{{1, 0, 0, 1, -1, 1}}, d{std::vector<float>(6)};
  OnDevice<float> vector{{-3, 1, 7}};
  OnDevice<std::uint8_t> mask{std::vector<std::uint8_t>(48)};

  explicit Multiplication(cudaDataType_t of_a = CUDA_R_32F, cudaDataType_t of_b = CUDA_R_32F,
                          cudaDataType_t of_d = CUDA_R_32F,
                          cublasComputeType_t compute = CUBLAS_COMPUTE_32F) {
    cublasLtCreate(&handle);
    cublasLtMatmulDescCreate(&desc, compute, CUDA_R_32F);
    cublasLtMatrixLayoutCreate(&a_layout, of_a, 2, 2, 2);
    cublasLtMatrixLayoutCreate(&b_layout, of_b, 2, 3, 2);
    cublasLtMatrixLayoutCreate(&d_layout, of_d, 2, 3, 2);
    cublasLtMatmulPreferenceCreate(&preference);
    const std::uint32_t in_f32 = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                         &in_f32, sizeof in_f32);
  }
  Multiplication(const Multiplication&) = delete;
  Multiplication& operator=(const Multiplication&) = delete;
  ~Multiplication() {
    synchronize();
    cublasLtMatmulPreferenceDestroy(preference);
    cublasLtMatrixLayoutDestroy(d_layout);
    cublasLtMatrixLayoutDestroy(b_layout);
    cublasLtMatrixLayoutDestroy(a_layout);
    cublasLtMatmulDescDestroy(desc);
    cublasLtDestroy(handle);
  }

  template <class T>
  void set(cublasLtMatmulDescAttributes_t attribute, T value) {
    EXPECT_EQ(cublasLtMatmulDescSetAttribute(desc, attribute, &value, sizeof value),
              CUBLAS_STATUS_SUCCESS);
  }

  void use(cublasLtEpilogue_t epilogue) {
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, static_cast<std::uint32_t>(epilogue));
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, vector.data);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, mask.data);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, std::int64_t{128});
  }

  std::pair<cublasStatus_t, cublasLtMatmulHeuristicResult_t> find() {
    cublasLtMatmulHeuristicResult_t result{};
    int found = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
        handle, desc, a_layout, b_layout, d_layout, d_layout, preference, 1, &result, &found);
    EXPECT_EQ(found, status == CUBLAS_STATUS_SUCCESS ? 1 : 0);
    return {status, result};
  }

  cublasStatus_t multiply(const cublasLtMatmulAlgo_t& algo, const float* a_at,
                          void* workspace = nullptr, std::size_t workspace_bytes = 0) {
    const float alpha = 1;
    const float beta = 0;
    return cublasLtMatmul(handle, desc, &alpha, a_at, a_layout, b.data, b_layout, &beta, d.data,
                          d_layout, d.data, d_layout, &algo, workspace, workspace_bytes, nullptr);
  }
};

TEST(EmulatedProduct, RefusesWhatTheManualRefuses) {
  Multiplication product;
  const auto plain = product.find().second.algo;
  product.use(CUBLASLT_EPILOGUE_RELU_AUX);
  product.set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, std::int64_t{64});
  EXPECT_EQ(product.find().first, CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(product.multiply(plain, product.a.data), CUBLAS_STATUS_NOT_SUPPORTED);
  product.use(CUBLASLT_EPILOGUE_BIAS);
  product.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<float*>(nullptr));
  EXPECT_EQ(product.multiply(plain, product.a.data), CUBLAS_STATUS_INVALID_VALUE);
}

TEST(EmulatedProduct, KeepsAlgorithmsToWhatTheyWereFoundFor) {
  const OnDevice<float> more(std::vector<float>(5));
  Multiplication product;
  const auto aligned = product.find().second.algo;
  EXPECT_EQ(product.multiply(aligned, more.data + 1), CUBLAS_STATUS_NOT_SUPPORTED);
  const std::uint32_t four = 4;
  cublasLtMatmulPreferenceSetAttribute(
      product.preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &four, sizeof four);
  const auto unaligned = product.find().second.algo;
  EXPECT_EQ(product.multiply(unaligned, more.data + 1), CUBLAS_STATUS_SUCCESS);
  product.set(CUBLASLT_MATMUL_DESC_TRANSA, std::int32_t{CUBLAS_OP_T});
  EXPECT_EQ(product.multiply(unaligned, product.a.data), CUBLAS_STATUS_NOT_SUPPORTED);
}

TEST(EmulatedProduct, WorksInItsWorkspace) {
  Multiplication product;
  const std::uint64_t bytes = 4096;
  cublasLtMatmulPreferenceSetAttribute(product.preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                       &bytes, sizeof bytes);
  const auto found = product.find().second;
  ASSERT_EQ(found.workspaceSize, bytes);
  const float* a = product.a.data;
  EXPECT_EQ(product.multiply(found.algo, a), CUBLAS_STATUS_NOT_SUPPORTED);
  const OnDevice<float> workspace(std::vector<float>(1024));
  EXPECT_EQ(product.multiply(found.algo, a, workspace.data, bytes), CUBLAS_STATUS_SUCCESS);
  EXPECT_TRUE(std::isnan(workspace.values()[1023]));
  const OnDevice<float> larger(std::vector<float>(2048));
  EXPECT_EQ(product.multiply(found.algo, a, larger.data + 4, bytes), CUBLAS_STATUS_NOT_SUPPORTED)
      << "a workspace begins at a multiple of 256 bytes";
}

TEST(EmulatedProduct, TakesTheTypesOfTheManual) {
  const auto status = [](auto... types) { return Multiplication(types...).find().first; };
  constexpr auto fine = CUBLAS_STATUS_SUCCESS;
  constexpr auto refused = CUBLAS_STATUS_NOT_SUPPORTED;
  for (const cudaDataType_t type : {CUDA_R_16BF, CUDA_R_16F}) {
    EXPECT_EQ(status(type, type, type), fine);
    EXPECT_EQ(status(type, type, CUDA_R_32F), fine);
    EXPECT_EQ(status(type, CUDA_R_32F, CUDA_R_32F), refused);
    EXPECT_EQ(status(CUDA_R_32F, CUDA_R_32F, type), refused);
    EXPECT_EQ(status(type, type, type, CUBLAS_COMPUTE_32F_FAST_TF32), refused);
  }
  EXPECT_EQ(status(CUDA_R_16BF, CUDA_R_16F, CUDA_R_32F), refused);
}

TEST(EmulatedProduct, FindsOperandsThatLeaveTheirMemoryOrOverlap) {
  for (const auto& [at, sentence] :
       {std::pair{&Multiplication::a, "A runs over the end"}, {&Multiplication::d, "overlaps"}}) {
    reset();
    Multiplication product;
    const std::uint32_t four = 4;
    cublasLtMatmulPreferenceSetAttribute(
        product.preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &four, sizeof four);
    const std::ptrdiff_t off = at == &Multiplication::a ? 1 : 0;
    EXPECT_EQ(product.multiply(product.find().second.algo, (product.*at).data + off),
              CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(synchronize(), cudaErrorIllegalAddress);
    EXPECT_THAT(take_violations(), ElementsAre(HasSubstr(sentence)));
  }
}

}  // namespace
}  // namespace cuda_host::test
