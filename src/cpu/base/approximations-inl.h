// SPDX-License-Identifier: Apache-2.0
// Functions of float32 that vectors compute, in the maths of their numbers: VectorMaths, LaneMaths.
// Included in a namespace, and once more in that of each kind of instructions that Highway compiles
// for, as crossover/activations-inl.h is.

/// With coefficients from the highest power of `at` to the constant.
template <class M, class V, class Coefficients>
inline V polynomial(M maths, V at, const Coefficients& coefficients) {
  V p = maths.number(0);
  for (const float coefficient : coefficients) {
    p = maths.multiply_add(p, at, maths.number(coefficient));
  }
  return p;
}

/// tanh(x) = x P(x^2) / Q(x^2) for |x| up to 8, beyond which it is 1 but for float32's last digits.
/// One division, and no exponential. Fitted to a relative error of 2e-8; with the rounding of
/// float32 it is 3e-7.
template <class M, class V>
inline V rational_tanh(M maths, V x) {
  constexpr double limit = 8;
  constexpr std::array numerator = {2.35085163e-11F, -1.47041854e-08F, 9.8786486e-06F,
                                    0.00298586069F,  0.129792228F,     1.0F};
  constexpr std::array denominator = {0.000237203058F, 0.0240279194F, 0.463125378F, 1.0F};
  const V above = maths.where(x > maths.number(limit), maths.number(limit), x);
  const V inside = maths.where(x < maths.number(-limit), maths.number(-limit), above);
  const V s = inside * inside;
  return inside * polynomial(maths, s, numerator) / polynomial(maths, s, denominator);
}

/// exp(-x^2 / 2), of which the standard normal distribution is made.
template <class M, class V>
inline V bell(M maths, V x) {
  return maths.exponential(maths.number(-0.5) * (x * x));
}

template <class M, class V>
inline V normal_density_of(M maths, V x) {
  return maths.number(0.398942280) * bell(maths, x);  // 1 / sqrt(2 pi)
}

/// exp(-x^2 / 2) t P(t), with t = 1 / (1 + scale |x|), is the integral of the standard normal
/// distribution beyond |x|. The form is that of Abramowitz and Stegun, 26.2.17. Fitted up to |x| =
/// 13, where the integral leaves float32, to a relative error of 1.3e-8.
template <class M, class V>
inline V normal_probability_of(M maths, V x) {
  constexpr double scale = 0.21;
  constexpr std::array coefficients = {-0.0721895546F, 0.286222011F,   -0.335813910F,
                                       0.355948836F,   -0.0986221135F, 0.126971811F,
                                       0.0686220080F,  0.0851548463F,  0.0837060660F};
  const V zero = maths.number(0);
  const V one = maths.number(1);
  const V t = one / maths.multiply_add(maths.number(scale), maths.absolute(x), one);
  const V beyond = bell(maths, x) * (polynomial(maths, t, coefficients) * t);
  return maths.where(x < zero, beyond, one - beyond);
}
