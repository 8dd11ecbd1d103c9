// SPDX-License-Identifier: Apache-2.0
// Coefficients of functions of a float32, each from the highest power to the constant.
#pragma once

#include <array>

namespace crossover::cpu {

/// tanh(x) = x P(x^2) / Q(x^2) for |x| up to 8, beyond which it is 1 but for float32's last digits.
/// One division, and no exponential. Fitted to a relative error of 2e-8; with the rounding of
/// float32 it is 3e-7.
namespace rational_tanh {

inline constexpr float limit = 8;
inline constexpr std::array numerator = {2.35085163e-11F, -1.47041854e-08F, 9.8786486e-06F,
                                         0.00298586069F,  0.129792228F,     1.0F};
inline constexpr std::array denominator = {0.000237203058F, 0.0240279194F, 0.463125378F, 1.0F};

}  // namespace rational_tanh

/// exp(-x^2 / 2) t P(t), with t = 1 / (1 + scale |x|), is the integral of the standard normal
/// distribution beyond |x|. The form is that of Abramowitz and Stegun, 26.2.17. Fitted up to |x| =
/// 13, where the integral leaves float32, to a relative error of 1.3e-8.
namespace normal_tail {

inline constexpr float scale = 0.21F;
inline constexpr std::array coefficients = {-0.0721895546F, 0.286222011F,   -0.335813910F,
                                            0.355948836F,   -0.0986221135F, 0.126971811F,
                                            0.0686220080F,  0.0851548463F,  0.0837060660F};

}  // namespace normal_tail

inline constexpr float normal_density_at_0 = 0.398942280F;  ///< 1 / sqrt(2 pi)

/// GELU's approximation by tanh is x sigmoid(x (constant + square x^2)).
namespace gelu_tanh {

inline constexpr float constant = 1.59576912F;
inline constexpr float square = 0.0713548163F;

}  // namespace gelu_tanh

}  // namespace crossover::cpu
