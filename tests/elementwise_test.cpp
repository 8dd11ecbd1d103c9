// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cfenv>
#include <cmath>

#include "../src/cpu/base/vector.h"
#include "crossover/float16.h"
#include "crossover/functions.h"
#include "crossover/operations/update.h"

namespace crossover::test {

// ---- Formulas that a device takes in float, against the same in more digits.

namespace {

TEST(AdamWClock, StaysRightForAMillionSteps) {
  for (const double beta : {0.0, 0.5, 0.9, 0.999, 0.99999}) {
    const AdamWOptions constants{.learning_rate = 1e-3, .beta1 = beta, .beta2 = beta};
    const AdamWClock<float> clock = constants.clock();
    double step_size = 0;
    double root = 0;
    for (int t = 1; t <= 1'000'000; ++t) {
      AdamWFactors<float> f{};
      f.set_time(clock, t);
      const double correction = -std::expm1(t * std::log(beta));
      step_size =
          std::max(step_size, std::abs(f.step_size * correction / constants.learning_rate - 1));
      root = std::max(root, std::abs(f.inverse_root_correction * std::sqrt(correction) - 1));
    }
    EXPECT_LE(step_size, 4e-7) << beta;  // seven roundings of 2^-24
    EXPECT_LE(root, 3e-7) << beta;
  }
}

}  // namespace

// ---- The 16-bit types: every bit pattern, and what lies between two of them.

namespace {

/// The number that a pattern stands for, by the definition of the format: `stored` bits of mantissa
/// below an exponent that is biased.
double meaning(std::uint32_t pattern, int stored, int bias) {
  const int exponent_bits = 15 - stored;
  const auto mantissa = static_cast<double>(pattern & ((1U << stored) - 1));
  const int exponent = static_cast<int>((pattern & 0x7fffU) >> stored);
  const double sign = (pattern & 0x8000U) != 0 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) {
    return mantissa == 0 ? sign * std::numeric_limits<double>::infinity()
                         : std::numeric_limits<double>::quiet_NaN();
  }
  if (exponent == 0) {
    return sign * std::ldexp(mantissa, 1 - bias - stored);
  }
  return sign * std::ldexp(mantissa + std::ldexp(1, stored), exponent - bias - stored);
}

struct Format {
  const char* name;
  int stored, bias;
  std::uint32_t infinity;
  float (*widen)(std::uint16_t);
  std::uint16_t (*narrow)(float);
  double (*rounded)(double);

  [[nodiscard]] double number(std::uint32_t pattern) const {
    return meaning(pattern, stored, bias);
  }
  friend std::ostream& operator<<(std::ostream& out, const Format& format) {
    return out << format.name;
  }
};

template <class T>
float widen_bits(std::uint16_t bits) {
  return widened(T{bits});
}
template <class T>
std::uint16_t narrow_to_bits(float x) {
  return narrowed<T>(x).bits;
}

/// In the last lane of a vector, as the CPU's loops have them.
template <class T>
float widen_in_vectors(std::uint16_t bits) {
  std::array<T, cpu::lanes> from;
  from.fill(T{bits});
  return cpu::load(cpu::WholeVector{}, from.data())[cpu::lanes - 1];
}
template <class T>
std::uint16_t narrow_in_vectors(float x) {
  std::array<float, cpu::lanes> from;
  from.fill(x);
  std::array<T, cpu::lanes> to;
  cpu::store(cpu::WholeVector{}, cpu::load(cpu::WholeVector{}, from.data()), to.data());
  return to.back().bits;
}

/// In the default environment: a CPU program may have told this thread to flush denormal numbers,
/// which are among bf16's.
class Float16 : public testing::TestWithParam<Format> {
 protected:
  void SetUp() override {
    std::fegetenv(&before_);
    std::fesetenv(FE_DFL_ENV);
  }
  void TearDown() override { std::fesetenv(&before_); }

 private:
  std::fenv_t before_{};
};

TEST_P(Float16, ReadsEveryPattern) {
  for (std::uint32_t pattern = 0; pattern <= 0xffffU; ++pattern) {
    const double expected = GetParam().number(pattern);
    const float got = GetParam().widen(static_cast<std::uint16_t>(pattern));
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(got)) << pattern;
    } else {
      ASSERT_EQ(got, expected) << pattern;
      ASSERT_EQ(std::signbit(got), std::signbit(expected)) << pattern;
      ASSERT_EQ(GetParam().narrow(got), pattern);
      ASSERT_EQ(GetParam().rounded(expected), expected) << pattern;
    }
  }
}

/// Between each two neighbours: below, at and above the middle. A middle goes to the even pattern.
TEST_P(Float16, RoundsToTheNearestAndTiesToEven) {
  const Format& format = GetParam();
  for (std::uint32_t low = 0; low < format.infinity; ++low) {
    const double below = format.number(low);
    // Beyond the largest number the next one would be infinity: that is the border to it.
    const double above = low + 1 == format.infinity ? below + (below - format.number(low - 1))
                                                    : format.number(low + 1);
    const double middle = (below + above) / 2;
    const std::uint32_t even = low % 2 == 0 ? low : low + 1;
    for (const double sign : {1.0, -1.0}) {
      const auto expect = [&](double x, std::uint32_t pattern) {
        const auto as_float = static_cast<float>(sign * x);
        const std::uint32_t sign_bit = sign < 0 ? 0x8000U : 0;
        if (as_float == sign * x) {
          ASSERT_EQ(format.narrow(as_float), pattern | sign_bit) << x;
        }
        ASSERT_EQ(format.rounded(sign * x), sign * format.number(pattern)) << x;
      };
      expect(middle, even);
      expect(static_cast<double>(std::nextafter(static_cast<float>(middle), 0.0F)), low);
      expect(static_cast<double>(std::nextafter(static_cast<float>(middle),
                                                std::numeric_limits<float>::infinity())),
             low + 1);
      // What a float32 can't tell from the middle, the reference can.
      ASSERT_EQ(format.rounded(sign * std::nextafter(middle, 0.0)), sign * below);
      ASSERT_EQ(format.rounded(sign * std::nextafter(middle, 2 * above + 1)),
                sign * format.number(low + 1));
    }
  }
}

TEST_P(Float16, KeepsWhatIsNoNumber) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(GetParam().widen(GetParam().narrow(nan))));
  EXPECT_TRUE(std::isnan(GetParam().widen(GetParam().narrow(std::bit_cast<float>(0x7f800001U)))));
  EXPECT_TRUE(std::isnan(GetParam().rounded(nan)));
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(GetParam().narrow(infinity), GetParam().infinity);
  EXPECT_EQ(GetParam().narrow(std::numeric_limits<float>::max()), GetParam().infinity);
  EXPECT_EQ(GetParam().rounded(-1e300), -std::numeric_limits<double>::infinity());
}

INSTANTIATE_TEST_SUITE_P(
    Formats, Float16,
    testing::Values(
        Format{"bf16", 7, 127, 0x7f80U, widen_bits<Bf16>, narrow_to_bits<Bf16>, rounded_to_bf16},
        Format{"f16", 10, 15, 0x7c00U, widen_bits<F16>, narrow_to_bits<F16>, rounded_to_f16},
        Format{"bf16_in_vectors", 7, 127, 0x7f80U, widen_in_vectors<Bf16>, narrow_in_vectors<Bf16>,
               rounded_to_bf16},
        Format{"f16_in_vectors", 10, 15, 0x7c00U, widen_in_vectors<F16>, narrow_in_vectors<F16>,
               rounded_to_f16}),
    [](const auto& parameters) { return parameters.param.name; });

}  // namespace

}  // namespace crossover::test
