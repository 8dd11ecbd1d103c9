// SPDX-License-Identifier: Apache-2.0
// The emulated product by hand: small matrices, column-major.
#include <cublasLt.h>
#include <gmock/gmock.h>

#include <limits>

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
  OnDevice<float> a{{1, 2, 3, 4}}, b{{1, 0, 0, 1, -1, 1}},
      d{std::vector<float>(6, std::numeric_limits<float>::quiet_NaN())};
  OnDevice<float> vector{{-3, 1, 7}};
  OnDevice<std::uint8_t> mask{std::vector<std::uint8_t>(48)};

  Multiplication() {
    cublasLtCreate(&handle);
    cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    cublasLtMatrixLayoutCreate(&a_layout, CUDA_R_32F, 2, 2, 2);
    cublasLtMatrixLayoutCreate(&b_layout, CUDA_R_32F, 2, 3, 2);
    cublasLtMatrixLayoutCreate(&d_layout, CUDA_R_32F, 2, 3, 2);
    cublasLtMatmulPreferenceCreate(&preference);
    const std::uint32_t in_f32 = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                         &in_f32, sizeof in_f32);
  }
  Multiplication(const Multiplication&) = delete;
  Multiplication& operator=(const Multiplication&) = delete;
  ~Multiplication() {
    cudaDeviceSynchronize();
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

  cublasStatus_t multiply(const cublasLtMatmulAlgo_t* algo, float beta = 0,
                          const float* a_at = nullptr, void* workspace = nullptr,
                          std::size_t workspace_bytes = 0) {
    const float alpha = 1;
    return cublasLtMatmul(handle, desc, &alpha, a_at != nullptr ? a_at : a.data, a_layout, b.data,
                          b_layout, &beta, d.data, d_layout, d.data, d_layout, algo, workspace,
                          workspace_bytes, nullptr);
  }

  std::vector<float> result(float beta = 0) {
    const auto [status, found] = find();
    EXPECT_EQ(status, CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(multiply(&found.algo, beta), CUBLAS_STATUS_SUCCESS);
    return d.values();
  }
};

TEST(EmulatedProduct, MultipliesColumnMajor) {
  Multiplication product;
  EXPECT_THAT(product.result(), ElementsAre(1, 2, 3, 4, 2, 2));
  EXPECT_THAT(product.result(1), ElementsAre(2, 4, 6, 8, 4, 4));
  product.set(CUBLASLT_MATMUL_DESC_TRANSA, std::int32_t{CUBLAS_OP_T});
  EXPECT_THAT(product.result(), ElementsAre(1, 3, 2, 4, 1, 1));
}

TEST(EmulatedProduct, AddsBiasThenRelu) {
  Multiplication product;
  product.use(CUBLASLT_EPILOGUE_BIAS);
  EXPECT_THAT(product.result(), ElementsAre(-2, 3, 0, 5, -1, 3));
  product.use(CUBLASLT_EPILOGUE_RELU_BIAS);
  EXPECT_THAT(product.result(), ElementsAre(0, 3, 0, 5, 0, 3));
}

TEST(EmulatedProduct, WritesAndReadsTheMask) {
  Multiplication product;
  product.use(CUBLASLT_EPILOGUE_RELU_AUX_BIAS);
  EXPECT_THAT(product.result(), ElementsAre(0, 3, 0, 5, 0, 3));
  const auto mask = product.mask.values();
  EXPECT_THAT((std::vector{mask[0], mask[16], mask[32]}), ElementsAre(2, 2, 2));
  product.use(CUBLASLT_EPILOGUE_DRELU);
  EXPECT_THAT(product.result(), ElementsAre(0, 2, 0, 4, 0, 2));
  product.use(CUBLASLT_EPILOGUE_DRELU_BGRAD);
  EXPECT_THAT(product.result(), ElementsAre(0, 2, 0, 4, 0, 2));
  EXPECT_THAT(product.vector.values(), ElementsAre(0, 8, 7));
}

TEST(EmulatedProduct, SumsItsOperands) {
  Multiplication product;
  product.use(CUBLASLT_EPILOGUE_BGRADA);
  EXPECT_THAT(product.result(), ElementsAre(1, 2, 3, 4, 2, 2));
  EXPECT_THAT(product.vector.values(), ElementsAre(4, 6, 7));
  product.use(CUBLASLT_EPILOGUE_BGRADB);
  product.result();
  EXPECT_THAT(product.vector.values(), ElementsAre(1, 1, 0));
}

TEST(EmulatedProduct, RefusesWhatTheManualRefuses) {
  Multiplication product;
  product.use(CUBLASLT_EPILOGUE_RELU_AUX);
  product.set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, std::int64_t{64});
  EXPECT_EQ(product.find().first, CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(product.multiply(nullptr), CUBLAS_STATUS_NOT_SUPPORTED);
  product.use(CUBLASLT_EPILOGUE_BIAS);
  product.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<float*>(nullptr));
  EXPECT_EQ(product.multiply(nullptr), CUBLAS_STATUS_INVALID_VALUE);
}

TEST(EmulatedProduct, KeepsAlgorithmsToWhatTheyWereFoundFor) {
  const OnDevice<float> more(std::vector<float>(5));
  Multiplication product;
  const auto aligned = product.find().second.algo;
  EXPECT_EQ(product.multiply(&aligned, 0, more.data + 1), CUBLAS_STATUS_NOT_SUPPORTED);
  const std::uint32_t four = 4;
  cublasLtMatmulPreferenceSetAttribute(
      product.preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &four, sizeof four);
  const auto unaligned = product.find().second.algo;
  EXPECT_EQ(product.multiply(&unaligned, 0, more.data + 1), CUBLAS_STATUS_SUCCESS);
  product.set(CUBLASLT_MATMUL_DESC_TRANSA, std::int32_t{CUBLAS_OP_T});
  EXPECT_EQ(product.multiply(&unaligned), CUBLAS_STATUS_NOT_SUPPORTED);
}

TEST(EmulatedProduct, WorksInItsWorkspace) {
  Multiplication product;
  const std::uint64_t bytes = 4096;
  cublasLtMatmulPreferenceSetAttribute(product.preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                       &bytes, sizeof bytes);
  const auto found = product.find().second;
  ASSERT_EQ(found.workspaceSize, bytes);
  EXPECT_EQ(product.multiply(&found.algo), CUBLAS_STATUS_NOT_SUPPORTED);
  const OnDevice<float> workspace(std::vector<float>(1024));
  EXPECT_EQ(product.multiply(&found.algo, 0, nullptr, workspace.data, bytes),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_TRUE(std::isnan(workspace.values()[1023]));
  const OnDevice<float> larger(std::vector<float>(2048));
  EXPECT_EQ(product.multiply(&found.algo, 0, nullptr, larger.data + 4, bytes),
            CUBLAS_STATUS_NOT_SUPPORTED)
      << "a workspace begins at a multiple of 256 bytes";
}

TEST(EmulatedProduct, TakesTheTypesOfTheManual) {
  const auto status = [](cudaDataType_t a, cudaDataType_t b, cudaDataType_t d,
                         cublasComputeType_t compute = CUBLAS_COMPUTE_32F) {
    Multiplication product;
    const auto set = [](cublasLtMatrixLayout_t layout, cudaDataType_t type) {
      const auto value = static_cast<std::uint32_t>(type);
      EXPECT_EQ(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_TYPE, &value,
                                                 sizeof value),
                CUBLAS_STATUS_SUCCESS);
    };
    set(product.a_layout, a);
    set(product.b_layout, b);
    set(product.d_layout, d);
    product.set(CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, static_cast<std::int32_t>(compute));
    return product.find().first;
  };
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

TEST(EmulatedProduct, RoundsFactorsToTf32AndResultsOnce) {
  Multiplication product;
  const OnDevice<float> a({1 + 0x1p-11F, 1 + 0x1p-10F + 0x1p-11F, 1 + 0x1p-12F, -3});
  ASSERT_EQ(product.multiply(nullptr, 0, a.data), CUBLAS_STATUS_SUCCESS);
  const auto exact = product.d.values();
  EXPECT_EQ(exact[0], 1 + 0x1p-11F);
  product.set(CUBLASLT_MATMUL_DESC_COMPUTE_TYPE,
              static_cast<std::int32_t>(CUBLAS_COMPUTE_32F_FAST_TF32));
  ASSERT_EQ(product.multiply(nullptr, 0, a.data), CUBLAS_STATUS_SUCCESS);
  const auto rounded = product.d.values();  // the first two columns are A's: ties to even
  EXPECT_EQ(rounded[0], 1);
  EXPECT_EQ(rounded[1], 1 + 0x1p-9F);
  EXPECT_EQ(rounded[2], 1);
  EXPECT_EQ(rounded[3], -3);
}

TEST(EmulatedProduct, FindsOperandsThatLeaveTheirMemory) {
  Multiplication product;
  EXPECT_EQ(product.multiply(nullptr, 0, product.a.data + 1), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  EXPECT_THAT(take_violations(), ElementsAre(HasSubstr("A runs over the end")));
}

TEST(EmulatedProduct, FindsResultsThatOverlap) {
  Multiplication product;
  EXPECT_EQ(product.multiply(nullptr, 0, product.d.data), CUBLAS_STATUS_SUCCESS);
  EXPECT_THAT(take_violations(), ElementsAre(HasSubstr("overlaps")));
}

}  // namespace
}  // namespace cuda_host::test
