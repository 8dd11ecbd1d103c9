// SPDX-License-Identifier: Apache-2.0
// One convolution as a library is asked for it: pass, extents, types and what is fused; and its
// launch. Data alone.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "../kernels/arrangement.h"
#include "../kernels/operand.h"
#include "crossover/operation.h"
#include "crossover/tensor.h"
#include "crossover/window.h"

namespace crossover::cuda {

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

}  // namespace crossover::cuda
