// SPDX-License-Identifier: Apache-2.0
// Scaled dot-product attention (SDPA) as cuDNN is asked for it: extents, type and mask; and its
// launch. Data alone.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "../kernels/operand.h"
#include "crossover/operation.h"
#include "crossover/tensor.h"

namespace crossover::cuda {

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
