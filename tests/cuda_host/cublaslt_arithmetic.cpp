// SPDX-License-Identifier: Apache-2.0
// D = epilogue(alpha op(A) op(B) + beta C) as the manual of cuBLASLt defines it; matrices are
// column-major.
#include <algorithm>
#include <cstdint>
#include <tuple>
#include <vector>

#include "crossover/float16.h"
#include "cublaslt.h"
#include "numbers.h"

namespace cuda_host {
namespace {

/// The layout's matrix [rows, cols], or its transpose, as rows of doubles.
CUDA_HOST_CHECKED_BEFORE void unpack(double* to, const Numbers& from,
                                     const cublasLtMatrixLayoutOpaque_t& layout, bool transposed) {
  if (transposed) {
    for (std::int64_t c = 0; c < layout.cols; ++c) {
      for (std::int64_t r = 0; r < layout.rows; ++r) {
        *to++ = from.get(c * layout.ld + r);
      }
    }
  } else {
    for (std::int64_t r = 0; r < layout.rows; ++r) {
      for (std::int64_t c = 0; c < layout.cols; ++c) {
        *to++ = from.get(c * layout.ld + r);
      }
    }
  }
}

/// op(X) as a product reads it; `transposed`: X is stored so.
std::vector<double> factor(const void* data, const cublasLtMatrixLayoutOpaque_t& layout,
                           bool transposed, bool tf32) {
  std::vector<double> to(static_cast<std::size_t>(layout.rows * layout.cols));
  unpack(to.data(), Numbers(data, layout.type), layout, transposed);
  if (tf32) {
    std::transform(to.begin(), to.end(), to.begin(), to_tf32);
  }
  return to;
}

/// d [m, n] += alpha a [m, k] b [k, n].
CUDA_HOST_CHECKED_BEFORE void add_product(double* d, double alpha, const double* a, const double* b,
                                          std::int64_t m, std::int64_t n, std::int64_t k) {
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t p = 0; p < k; ++p) {
      const double factor = alpha * a[i * k + p];
      for (std::int64_t j = 0; j < n; ++j) {
        d[i * n + j] += factor * b[p * n + j];
      }
    }
  }
}

/// sums [rows of x] of x over its columns.
void row_sums(const double* x, std::int64_t rows, std::int64_t cols, const Numbers& sums) {
  for (std::int64_t r = 0; r < rows; ++r) {
    double sum = 0;
    for (std::int64_t c = 0; c < cols; ++c) {
      sum += x[r * cols + c];
    }
    sums.set(r, sum);
  }
}

/// sums [columns of x] of x over its rows.
void column_sums(const double* x, std::int64_t rows, std::int64_t cols, const Numbers& sums) {
  for (std::int64_t c = 0; c < cols; ++c) {
    double sum = 0;
    for (std::int64_t r = 0; r < rows; ++r) {
      sum += x[r * cols + c];
    }
    sums.set(c, sum);
  }
}

/// Bit (row, column) of the mask: `ld` bits a column, the lowest bit of a byte first.
struct Mask {
  std::uint8_t* bytes;
  std::int64_t ld;

  [[nodiscard]] CUDA_HOST_CHECKED_BEFORE bool get(std::int64_t row, std::int64_t column) const {
    const std::int64_t bit = column * ld + row;
    return ((bytes[bit / 8] >> (bit % 8)) & 1) != 0;
  }
  CUDA_HOST_CHECKED_BEFORE void set(std::int64_t row, std::int64_t column, bool value) const {
    const std::int64_t bit = column * ld + row;
    const auto one = static_cast<std::uint8_t>(1U << (bit % 8));
    bytes[bit / 8] =
        static_cast<std::uint8_t>(value ? bytes[bit / 8] | one : bytes[bit / 8] & ~one);
  }
};

/// What follows the sums d [m, n]: into D, and the mask.
CUDA_HOST_CHECKED_BEFORE void finish(double* d, const Product& product, const Operands& operands,
                                     const Numbers& vector) {
  const Numbers stored_c(operands.c, product.c.type);
  const Numbers stored_d(operands.d, product.d.type);
  const Mask mask{static_cast<std::uint8_t*>(product.desc.aux), product.desc.aux_ld};
  const bool bias = product.has(CUBLASLT_EPILOGUE_BIAS);
  const bool relu = product.has(CUBLASLT_EPILOGUE_RELU);
  const bool drelu = product.has(CUBLASLT_EPILOGUE_DRELU);
  const bool has_mask = product.has_mask();
  const bool mask_at_zero = state().device.mask_at_zero;
  const bool rounds_first = state().device.rounds_before_bias && product.d.type == CUDA_R_16BF;
  for (std::int64_t i = 0; i < product.m; ++i) {
    for (std::int64_t j = 0; j < product.n; ++j) {
      double& x = d[i * product.n + j];
      if (operands.beta != 0) {  // else C is not read: it may hold anything
        x += double{operands.beta} * stored_c.get(j * product.c.ld + i);
      }
      if (bias) {
        x = (rounds_first ? crossover::rounded_to_bf16(x) : x) + vector.get(i);
      }
      if (relu) {
        if (has_mask) {
          mask.set(i, j, x > 0 || (x == 0 && mask_at_zero));
        }
        x = x > 0 ? x : 0;
      }
      if (drelu) {
        x = mask.get(i, j) ? x : 0;
      }
      stored_d.set(j * product.d.ld + i, x);
    }
  }
}

}  // namespace

void multiply(const Product& product, const Operands& operands) {
  const auto [m, n, k] = std::tuple(product.m, product.n, product.k);
  const auto& desc = product.desc;
  const bool tf32 = desc.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  const auto a = factor(operands.a, product.a, desc.transpose_a != CUBLAS_OP_N, tf32);  // [m, k]
  const auto b = factor(operands.b, product.b, desc.transpose_b != CUBLAS_OP_N, tf32);  // [k, n]
  std::vector<double> d(static_cast<std::size_t>(m * n));                               // [m, n]
  add_product(d.data(), operands.alpha, a.data(), b.data(), m, n, k);
  const Numbers vector(desc.bias, product.d.type);
  finish(d.data(), product, operands, vector);
  if (product.has(CUBLASLT_EPILOGUE_DRELU_BGRAD)) {
    row_sums(d.data(), m, n, vector);
  } else if (product.has(CUBLASLT_EPILOGUE_BGRADB)) {
    column_sums(b.data(), k, n, vector);
  }
}

}  // namespace cuda_host
