// SPDX-License-Identifier: Apache-2.0
// What is asked of the libraries: products, convolutions and attention as data.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "crossover/operation.h"
#include "crossover/tensor.h"
#include "launches/operand.h"

namespace crossover::cuda {

// ---- One matrix product as cuBLASLt is asked for it: shapes, types, alignment and epilogue; and
// its launch. Data alone.

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
  Networks networks;  ///< one product for each: a strided batch

  // clang-tidy 14 takes the comparison with zero that the compiler makes for ours.
  // NOLINTNEXTLINE(modernize-use-nullptr,readability-implicit-bool-conversion)
  auto operator<=>(const ProductForm&) const = default;
};
std::string to_string(const ProductForm& form);
double flops(const ProductForm& form);

inline ProductForm for_networks(ProductForm form, const Networks& networks) {
  form.networks = networks;
  return form;
}

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

// ---- One convolution as a library is asked for it: pass, extents, types and what is fused; and
// its launch. Data alone.

enum class ConvolutionPass {
  forward,  ///< y from x and w
  dx,       ///< x from w and y
  dw,       ///< w from x and y
};

/// x [batch, in, height, width], w [out, in / groups, rows, columns], y [batch, out,
/// positions_down, positions_across], all dense, and all three in the same layout. Sums are f32 or
/// more precise.
struct ConvolutionForm {
  static constexpr const char* library = "cuDNN";
  static constexpr std::size_t most_timed = 8;
  ConvolutionPass pass = ConvolutionPass::forward;
  std::int64_t batch = 0, in = 0, height = 0, width = 0;
  std::int64_t out = 0, positions_down = 0, positions_across = 0;
  Pair size = 1, stride = 1, padding = 0, dilation = 1;
  std::int64_t groups = 1;
  bool bias = false;           ///< forward: + bias [out]
  bool relu = false;           ///< forward: then max(., 0)
  std::int64_t alignment = 0;  ///< bytes, of all addresses
  Type type = Type::f32;       ///< of what is read
  Type result = Type::f32;     ///< of what is written
  Layout layout = Layout::plain;

  [[nodiscard]] bool is_fused() const { return bias || relu; }

  // clang-tidy 14 takes the comparison with zero that the compiler makes for ours.
  // NOLINTNEXTLINE(modernize-use-nullptr,readability-implicit-bool-conversion)
  auto operator<=>(const ConvolutionForm&) const = default;
};
std::string to_string(const ConvolutionForm& form);

/// "forward", "dx", "dw".
std::string short_name(ConvolutionPass pass);

/// 2 for each product of the sum that a value of y, dx or dw is, as if no window stood over an
/// edge.
double flops(const ConvolutionForm& form);

/// x, w and y of a Convolution, or their gradients: the form's pass says which one is written.
template <template <class> class At>
struct ConvolutionArguments {
  ConvolutionForm form;
  At<void> x, w, y;
  At<const void> bias;
  static constexpr OpCategory category = OpCategory::convolution;
};
using ConvolutionLaunch = ConvolutionArguments<Planned>;

// ---- Scaled dot-product attention (SDPA) as cuDNN is asked for it: extents, type and mask; and
// its launch. Data alone.

/// An Attention, or its gradient: qkv [time, batch, 3 heads d], y [time, batch, heads d], and
/// log_sums f32 [batch, heads, time]; every address is a multiple of 16. Sums are f32.
struct SdpaForm {
  static constexpr const char* library = "cuDNN";
  static constexpr std::size_t most_timed = 8;
  bool gradient = false;
  std::int64_t time = 0, batch = 0, heads = 0, d = 0;
  bool causal = false;
  Type type = Type::bf16;  ///< of everything but the log_sums
  bool repeats = true;     ///< to the bit: for a gradient the workspace holds a number a score

  [[nodiscard]] std::int64_t width() const { return heads * d; }

  // clang-tidy 14 takes the comparison with zero that the compiler makes for ours.
  // NOLINTNEXTLINE(modernize-use-nullptr,readability-implicit-bool-conversion)
  auto operator<=>(const SdpaForm&) const = default;
};
std::string to_string(const SdpaForm& form);

/// "attention forward", "attention backward".
std::string short_name(const SdpaForm& form);

/// 2 for each product of its sums, as if every query saw every key.
double flops(const SdpaForm& form);

/// The gradient reads y and log_sums, and has dy and dqkv besides.
template <template <class> class At>
struct SdpaArguments {
  SdpaForm form;
  At<const void> qkv;
  At<void> y;
  At<float> log_sums;
  At<const void> dy;
  At<void> dqkv;
  static constexpr OpCategory category = OpCategory::product;
};
using SdpaLaunch = SdpaArguments<Planned>;

}  // namespace crossover::cuda
