// SPDX-License-Identifier: Apache-2.0
// Elementwise mathematics, written once: for the CPU, for CUDA kernels, and in double for the
// reference. Each function that has no fused form is one struct here, from which files, the
// reference, the CPU, CUDA and the verification take it. Activations that products and convolutions
// compute as well have their formulas beside activation.h.
#pragma once

#include <initializer_list>
#include <utility>
#include <vector>

#include "crossover/activation.h"
#include "crossover/host_device.h"
#include "crossover/names.h"
#include "crossover/scalar_maths.h"

namespace crossover {

/// Of functions that are tried with numbers above 0 alone.
template <class Function>
concept IsOfPositive = requires {
  Function::is_of_positive;
};

/// Each has its name and its numbers as files write them (layer.h has the words), what it counts
/// (cost.h; its derivative with the product by the gradient), its formula, the gradient of x, which
/// is dy times its derivative, at a kink that of the left side, and where that jumps. NaN passes
/// through.
namespace functions {

/// What most have: no numbers, and a derivative that jumps nowhere.
struct WithoutNumbers {
  template <class Self, class See>
  static void describe(Self& /*function*/, See& /*see*/) {}
  static std::vector<double> kinks() { return {}; }
};

/// x, or a part of it where that is negative.
struct LeakyRelu {
  double negative_slope = 0.01;

  static constexpr const char* name = "leaky_relu";
  static constexpr double flops = 2, derivative_flops = 2;
  template <class Self, class See>
  static void describe(Self& function, See& see) {
    see.number("negative_slope", function.negative_slope, 0.01);
  }
  template <class M>
  [[nodiscard]] CROSSOVER_HOST_DEVICE auto value(M maths, typename M::Number x) const {
    return maths.where(x < maths.number(0), maths.number(negative_slope) * x, x);
  }
  template <class M>
  [[nodiscard]] CROSSOVER_HOST_DEVICE auto gradient(M maths, typename M::Number dy,
                                                    typename M::Number x) const {
    return maths.where(x > maths.number(0), dy, maths.number(negative_slope) * dy);
  }
  static std::vector<double> kinks() { return {0}; }
};

/// x, or alpha (e^x - 1) where that is negative (Clevert et al. 2016).
struct Elu {
  double alpha = 1;

  static constexpr const char* name = "elu";
  static constexpr double flops = 4, derivative_flops = 4;
  template <class Self, class See>
  static void describe(Self& function, See& see) {
    see.number("alpha", function.alpha, 1.0);
  }
  template <class M>
  [[nodiscard]] CROSSOVER_HOST_DEVICE auto value(M maths, typename M::Number x) const {
    return maths.where(x < maths.number(0),
                       maths.number(alpha) * maths.exponential_minus_1(negative(maths, x)), x);
  }
  template <class M>
  [[nodiscard]] CROSSOVER_HOST_DEVICE auto gradient(M maths, typename M::Number dy,
                                                    typename M::Number x) const {
    return maths.where(x > maths.number(0), dy,
                       dy * (maths.number(alpha) * maths.exponential(negative(maths, x))));
  }
  [[nodiscard]] std::vector<double> kinks() const {
    return alpha == 1 ? std::vector<double>() : std::vector<double>{0};
  }

 private:
  template <class M>
  static CROSSOVER_HOST_DEVICE auto negative(M maths, typename M::Number x) {
    return maths.where(x > maths.number(0), maths.number(0), x);  // no power that overflows
  }
};

/// log(1 + e^x).
struct Softplus : WithoutNumbers {
  static constexpr const char* name = "softplus";
  static constexpr double flops = 5, derivative_flops = 5;
  template <class M>
  [[nodiscard]] CROSSOVER_HOST_DEVICE auto value(M maths, typename M::Number x) const {
    return maths.where(x < maths.number(0), maths.number(0), x) +
           maths.logarithm_of_1_plus(power(maths, x));
  }
  template <class M>
  [[nodiscard]] CROSSOVER_HOST_DEVICE auto gradient(M maths, typename M::Number dy,
                                                    typename M::Number x) const {
    const auto e = power(maths, x);
    return dy * (maths.where(x < maths.number(0), e, maths.number(1)) / (maths.number(1) + e));
  }

 private:
  template <class M>
  static CROSSOVER_HOST_DEVICE auto power(M maths, typename M::Number x) {
    return maths.exponential(maths.where(x < maths.number(0), x, -x));
  }
};

struct Sine : WithoutNumbers {
  static constexpr const char* name = "sin";
  static constexpr double flops = 1, derivative_flops = 2;
  template <class M>
  [[nodiscard]] CROSSOVER_HOST_DEVICE auto value(M maths, typename M::Number x) const {
    return maths.sine(x);
  }
  template <class M>
  [[nodiscard]] CROSSOVER_HOST_DEVICE auto gradient(M maths, typename M::Number dy,
                                                    typename M::Number x) const {
    return dy * maths.cosine(x);
  }
};

struct Exponential : WithoutNumbers {
  static constexpr const char* name = "exp";
  static constexpr double flops = 1, derivative_flops = 2;
  template <class M>
  [[nodiscard]] CROSSOVER_HOST_DEVICE auto value(M maths, typename M::Number x) const {
    return maths.exponential(x);
  }
  template <class M>
  [[nodiscard]] CROSSOVER_HOST_DEVICE auto gradient(M maths, typename M::Number dy,
                                                    typename M::Number x) const {
    return dy * maths.exponential(x);
  }
};

/// log(x), of x above 0.
struct Logarithm : WithoutNumbers {
  static constexpr const char* name = "log";
  static constexpr bool is_of_positive = true;
  static constexpr double flops = 1, derivative_flops = 1;
  template <class M>
  [[nodiscard]] CROSSOVER_HOST_DEVICE auto value(M maths, typename M::Number x) const {
    return maths.logarithm(x);
  }
  template <class M>
  [[nodiscard]] CROSSOVER_HOST_DEVICE auto gradient(M /*maths*/, typename M::Number dy,
                                                    typename M::Number x) const {
    return dy / x;
  }
};

/// Of x from 0.
struct SquareRoot : WithoutNumbers {
  static constexpr const char* name = "sqrt";
  static constexpr bool is_of_positive = true;
  static constexpr double flops = 1, derivative_flops = 3;
  template <class M>
  [[nodiscard]] CROSSOVER_HOST_DEVICE auto value(M maths, typename M::Number x) const {
    return maths.square_root(x);
  }
  template <class M>
  [[nodiscard]] CROSSOVER_HOST_DEVICE auto gradient(M maths, typename M::Number dy,
                                                    typename M::Number x) const {
    return dy * (maths.number(0.5) / maths.square_root(x));
  }
};

/// 1 / x.
struct Reciprocal : WithoutNumbers {
  static constexpr const char* name = "reciprocal";
  static constexpr bool is_of_positive = true;
  static constexpr double flops = 1, derivative_flops = 3;
  template <class M>
  [[nodiscard]] CROSSOVER_HOST_DEVICE auto value(M maths, typename M::Number x) const {
    return maths.number(1) / x;
  }
  template <class M>
  [[nodiscard]] CROSSOVER_HOST_DEVICE auto gradient(M maths, typename M::Number dy,
                                                    typename M::Number x) const {
    return dy * (maths.number(-1) / (x * x));
  }
};

/// |x|; its derivative at 0 is 0, as PyTorch's is.
struct Absolute : WithoutNumbers {
  static constexpr const char* name = "abs";
  static constexpr double flops = 1, derivative_flops = 2;
  template <class M>
  [[nodiscard]] CROSSOVER_HOST_DEVICE auto value(M maths, typename M::Number x) const {
    return maths.where(x < maths.number(0), -x, x);
  }
  template <class M>
  [[nodiscard]] CROSSOVER_HOST_DEVICE auto gradient(M maths, typename M::Number dy,
                                                    typename M::Number x) const {
    return maths.where(x < maths.number(0), -dy, maths.only_where(x > maths.number(0), dy));
  }
  static std::vector<double> kinks() { return {0}; }
};

/// x, held between two numbers.
struct Hardtanh {
  double min_val = -1, max_val = 1;

  static constexpr const char* name = "hardtanh";
  static constexpr double flops = 2, derivative_flops = 2;
  template <class Self, class See>
  static void describe(Self& function, See& see) {
    see.any_number("min_val", function.min_val, -1.0);
    see.any_number("max_val", function.max_val, 1.0);
  }
  template <class M>
  [[nodiscard]] CROSSOVER_HOST_DEVICE auto value(M maths, typename M::Number x) const {
    const auto least = maths.number(min_val);
    const auto most = maths.number(max_val);
    return maths.where(x < least, least, maths.where(x > most, most, x));
  }
  template <class M>
  [[nodiscard]] CROSSOVER_HOST_DEVICE auto gradient(M maths, typename M::Number dy,
                                                    typename M::Number x) const {
    const auto above = maths.only_where(x > maths.number(min_val), dy);
    return maths.only_where(x < maths.number(max_val), above);
  }
  [[nodiscard]] std::vector<double> kinks() const { return {min_val, max_val}; }
};

/// scale x + shift, of constants.
struct Affine {
  double scale = 1, shift = 0;

  static constexpr const char* name = "affine";
  static constexpr double flops = 2, derivative_flops = 1;
  template <class Self, class See>
  static void describe(Self& function, See& see) {
    see.any_number("scale", function.scale, 1.0);
    see.any_number("shift", function.shift, 0.0);
  }
  template <class M>
  [[nodiscard]] CROSSOVER_HOST_DEVICE auto value(M maths, typename M::Number x) const {
    return maths.number(scale) * x + maths.number(shift);
  }
  template <class M>
  [[nodiscard]] CROSSOVER_HOST_DEVICE auto gradient(M maths, typename M::Number dy,
                                                    typename M::Number /*x*/) const {
    return dy * maths.number(scale);
  }
  static std::vector<double> kinks() { return {}; }
};

}  // namespace functions

/// Of<all functions>.
template <template <class...> class Of>
using OfFunctions =
    Of<functions::LeakyRelu, functions::Elu, functions::Softplus, functions::Sine,
       functions::Exponential, functions::Logarithm, functions::SquareRoot, functions::Reciprocal,
       functions::Absolute, functions::Hardtanh, functions::Affine>;

// ---- Losses

/// As files and names of rows call them.
inline constexpr std::initializer_list<std::pair<const char*, LossFunction>> named_losses{
    {"cross_entropy", LossFunction::cross_entropy},
    {"mse", LossFunction::mse},
    {"bce", LossFunction::bce}};

/// One of those.
constexpr const char* name_of(LossFunction loss) { return name_in(named_losses, loss); }

}  // namespace crossover
