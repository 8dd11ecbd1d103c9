// SPDX-License-Identifier: Apache-2.0
// tanh(x) = x P(x^2) / Q(x^2) for |x| up to 8, beyond which it is 1 but for float32's last digits.
// One division, and no exponential. Coefficients are fitted to a relative error of 2e-8; with the
// rounding of float32 it is 3e-7.
#pragma once

#include <array>

namespace crossover::cpu::rational_tanh {

inline constexpr float limit = 8;

// From the highest power of x^2 to the constant.
inline constexpr std::array numerator = {2.35085163e-11F, -1.47041854e-08F, 9.8786486e-06F,
                                         0.00298586069F,  0.129792228F,     1.0F};
inline constexpr std::array denominator = {0.000237203058F, 0.0240279194F, 0.463125378F, 1.0F};

}  // namespace crossover::cpu::rational_tanh
