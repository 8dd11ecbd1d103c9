// SPDX-License-Identifier: Apache-2.0
// The kernels' conversions to and from 16 bits by CUDA's own headers, which know the host as well.
#include "../src/cuda/kernels/device/convert.cuh"

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace crossover::test {
namespace {

template <class T>
void expect_conversions() {
  for (unsigned upper = 0; upper < 1U << 16U; ++upper) {
    const T stored{static_cast<std::uint16_t>(upper)};
    const float value = widened(stored);
    const float read = cuda::widen(stored);
    ASSERT_TRUE(read == value || (std::isnan(read) && std::isnan(value))) << upper;
    // A float of any exponent, at, beside and between its halves.
    for (const unsigned lower : {0U, 1U, 0x0fffU, 0x1000U, 0x1001U, 0x7fffU, 0x8000U, 0x8001U}) {
      const unsigned bits = upper << 16U | lower;
      float wide = 0;
      std::memcpy(&wide, &bits, sizeof wide);
      if (!std::isnan(wide)) {
        ASSERT_EQ(cuda::narrow<T>(wide).bits, narrowed<T>(wide).bits) << wide;
      }
    }
  }
}

TEST(Convert, ToBf16AndBackAsOnTheHost) { expect_conversions<Bf16>(); }
TEST(Convert, ToF16AndBackAsOnTheHost) { expect_conversions<F16>(); }

}  // namespace
}  // namespace crossover::test
