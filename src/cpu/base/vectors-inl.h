// SPDX-License-Identifier: Apache-2.0
// Vectors of a cache line at most, and what the compiler must be told of them.
// Compiled once for each target (Highway), so the guard opens again for each.
#if defined(CROSSOVER_CPU_VECTORS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef CROSSOVER_CPU_VECTORS_INL_H
#undef CROSSOVER_CPU_VECTORS_INL_H
#else
#define CROSSOVER_CPU_VECTORS_INL_H
#endif

// clang-format off
#include <array>
#include <cstddef>
#include <cstdint>

#include <hwy/highway.h>
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace crossover::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using Lanes = hn::CappedTag<float, 16>;
using Vector = hn::Vec<Lanes>;

inline constexpr std::int64_t lanes = static_cast<std::int64_t>(hn::MaxLanes(Lanes()));

/// The vector, in a register. GCC would give each multiply-add that has it as a factor a load of
/// its own, and processors load no more vectors in a cycle than they multiply.
HWY_INLINE Vector kept(Vector v) {
#if HWY_ARCH_X86 && !HWY_COMPILER_MSVC
  asm("" : "+v"(v.raw));
#endif
  return v;
}

/// The vector there, loaded once.
HWY_INLINE Vector loaded(const float* from) { return kept(hn::Load(Lanes(), from)); }

/// So many vectors of zeros.
template <std::size_t count>
struct Zeros {
#if !HWY_ARCH_X86  // elsewhere a vector has a constructor, which sets nothing
  HWY_INLINE Zeros() {
    for (Vector& vector : vectors) {
      vector = hn::Zero(Lanes());
    }
  }
#endif
  std::array<Vector, count> vectors{};
};

}  // namespace
}  // namespace crossover::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
