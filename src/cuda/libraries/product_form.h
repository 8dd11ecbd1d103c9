// SPDX-License-Identifier: Apache-2.0
// One matrix product as cuBLASLt is asked for it: shapes, types, alignment and epilogue; and its
// launch. Data alone.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "../kernels/operand.h"
#include "crossover/operation.h"
#include "crossover/tensor.h"

namespace crossover::cuda {

/// What cuBLASLt does to a product's result D, column-major [m, n], before it is stored.
enum class Epilogue {
  none,
  bias,            ///< + vector [m]
  relu,            ///< max(., 0)
  relu_bias,       ///< both
  relu_mask,       ///< relu, and a bit for each positive element into the mask
  relu_mask_bias,  ///< with bias
  drelu,           ///< * mask
  drelu_bias_sum,  ///< drelu, and the sums over n into vector [m]: the layer below's bias gradient
  b_sum,           ///< the sums of B over k into vector [n]: the same layer's bias gradient
};
bool reads_vector(Epilogue epilogue);
bool writes_vector(Epilogue epilogue);
bool uses_mask(Epilogue epilogue);
bool writes_mask(Epilogue epilogue);

/// D (+)= A B in cuBLASLt's column-major terms, everything dense: our row-major [rows, columns] is
/// its [columns, rows]. A is stored as [m, k], or as [k, m] where it is transposed; B likewise.
/// An epilogue's vector has the type of D.
struct ProductForm {
  static constexpr const char* library = "cuBLASLt";
  static constexpr std::size_t most_timed = 14;  ///< eight guesses, and six with split sums
  std::int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  bool accumulate = false;
  Epilogue epilogue = Epilogue::none;
  std::int64_t alignment_a = 0, alignment_b = 0, alignment_d = 0;  ///< bytes, of the addresses
  Type factors = Type::f32;                                        ///< A and B
  Type result = Type::f32;                                         ///< D

  // clang-tidy 14 takes the comparison with zero that the compiler makes for ours.
  // NOLINTNEXTLINE(modernize-use-nullptr,readability-implicit-bool-conversion)
  auto operator<=>(const ProductForm&) const = default;
};
std::string to_string(const ProductForm& form);
double flops(const ProductForm& form);

/// cuBLASLt's bit mask of D [m, n]: columns of `mask_leading` bits.
std::int64_t mask_leading(std::int64_t m);
std::int64_t mask_bytes(std::int64_t m, std::int64_t n);

/// What an epilogue reads or writes besides stays where it is.
template <template <class> class At>
struct ProductArguments {
  ProductForm form;
  At<const void> a, b;
  At<void> d, vector, mask;
  static constexpr OpCategory category = OpCategory::product;
};
using ProductLaunch = ProductArguments<Planned>;

}  // namespace crossover::cuda
