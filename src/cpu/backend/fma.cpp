// SPDX-License-Identifier: Apache-2.0
#include "../base/targets.h"
#include "probes.h"

// Highway compiles what lies between its markers once for each target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fma.cpp"  // NOLINT(cppcoreguidelines-macro-usage): Highway's way
#include <hwy/foreach_target.h>
// clang-format off
#include <array>
#include <utility>

#include <hwy/highway.h>

#include "../../probe/expected.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace crossover::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using Vectors = hn::ScalableTag<float>;
// As many vectors as the registers hold beside the factor and the summand: two units of four or
// five cycles' latency need ten.
constexpr int chains = HWY_MAX_BYTES == 64 || HWY_ARCH_ARM_A64 ? 24 : 12;
constexpr std::int64_t lanes = HWY_MAX_BYTES / sizeof(float);
static_assert(fma_block % (lanes * chains) == 0);

void fma(std::int64_t begin, std::int64_t end, std::int64_t length, float* results) {
  const Vectors d;
  const auto factor = hn::Set(d, probe::fma_factor);
  const auto summand = hn::Set(d, probe::fma_summand);
  for (std::int64_t first = begin; first < end; first += lanes * chains) {
    for (std::int64_t i = first; i < first + lanes * chains; ++i) {
      results[i] = probe::fma_start(i);
    }
    [&]<std::size_t... chain>(std::index_sequence<chain...>) {
      std::array<hn::Vec<Vectors>, chains> x{hn::LoadU(d, results + first + chain * lanes)...};
      for (std::int64_t step = 0; step < length; ++step) {
        ((x[chain] = hn::MulAdd(x[chain], factor, summand)), ...);
      }
      (hn::StoreU(x[chain], d, results + first + chain * lanes), ...);
    }
    (std::make_index_sequence<chains>{});
  }
}

/// Null where the processor has no fused multiply-add.
FusedMultiplyAdds fused_multiply_adds() { return HWY_NATIVE_FMA != 0 ? &fma : nullptr; }

}  // namespace
}  // namespace crossover::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace crossover::cpu {

HWY_EXPORT(fused_multiply_adds);

FusedMultiplyAdds best_fused_multiply_adds() { return HWY_DYNAMIC_DISPATCH(fused_multiply_adds)(); }

}  // namespace crossover::cpu
#endif
