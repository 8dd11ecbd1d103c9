// SPDX-License-Identifier: Apache-2.0
// The activations: an entry for each. What computes them is templated on the maths of its numbers:
// ScalarMaths (functions.h) of the reference and of devices, VectorMaths and LaneMaths (src/cpu/)
// of vectors. Included in a namespace, and once more in that of each kind of instructions that
// Highway compiles for, since a template has the instructions of the place that defines it.

/// Each has what it counts (cost.h; its derivative with the product by the gradient), where its
/// derivative jumps, whether that takes the input (derivative_takes_input()), its form in oneDNN,
/// its value, and the gradient of its input: dy times its derivative, which at a kink is that of
/// the flat side, as in PyTorch. NaN passes through.
template <Activation activation>
struct ActivationOf;

/// What most have.
struct ActivationDefaults {
  static constexpr bool takes_input = false;
  static std::vector<double> kinks() { return {}; }
};

template <class M, class V>
CROSSOVER_HOST_DEVICE inline V sigmoid_of(M maths, V x) {
  return maths.number(1) / (maths.number(1) + maths.exponential(maths.number(0) - x));
}

/// Between both.
template <class M, class V>
CROSSOVER_HOST_DEVICE inline V held(M maths, double least, V x, double most) {
  const V above = maths.where(x > maths.number(most), maths.number(most), x);
  return maths.where(x < maths.number(least), maths.number(least), above);
}

/// dy where y lies between 0 and `most`.
template <class M, class V>
CROSSOVER_HOST_DEVICE inline V passed_below(M maths, double most, V dy, V y) {
  return maths.only_where(y > maths.number(0), maths.only_where(y < maths.number(most), dy));
}

template <>
struct ActivationOf<Activation::identity> : ActivationDefaults {
  static constexpr double flops = 0, derivative_flops = 0;
  template <class M, class V>
  static CROSSOVER_HOST_DEVICE V value(M /*maths*/, V x) {
    return x;
  }
  template <class M, class V>
  static CROSSOVER_HOST_DEVICE V gradient(M /*maths*/, V dy, V /*y*/) {
    return dy;
  }
  template <class A>
  static constexpr OnednnFunction<A> onednn{A::eltwise_linear, 1, 0};
};

template <>
struct ActivationOf<Activation::relu> : ActivationDefaults {
  static constexpr double flops = 1, derivative_flops = 1;
  template <class M, class V>
  static CROSSOVER_HOST_DEVICE V value(M maths, V x) {
    return maths.where(x < maths.number(0), maths.number(0), x);
  }
  template <class M, class V>
  static CROSSOVER_HOST_DEVICE V gradient(M maths, V dy, V y) {
    return maths.only_where(y > maths.number(0), dy);
  }
  static std::vector<double> kinks() { return {0}; }
  template <class A>
  static constexpr OnednnFunction<A> onednn{A::eltwise_relu};
};

template <>
struct ActivationOf<Activation::sigmoid> : ActivationDefaults {
  static constexpr double flops = 4, derivative_flops = 3;
  template <class M, class V>
  static CROSSOVER_HOST_DEVICE V value(M maths, V x) {
    return sigmoid_of(maths, x);
  }
  template <class M, class V>
  static CROSSOVER_HOST_DEVICE V gradient(M maths, V dy, V y) {
    return dy * (y * (maths.number(1) - y));
  }
  template <class A>
  static constexpr OnednnFunction<A> onednn{A::eltwise_logistic};
};

template <>
struct ActivationOf<Activation::tanh> : ActivationDefaults {
  static constexpr double flops = 4, derivative_flops = 3;
  template <class M, class V>
  static CROSSOVER_HOST_DEVICE V value(M maths, V x) {
    return maths.hyperbolic_tangent(x);
  }
  template <class M, class V>
  static CROSSOVER_HOST_DEVICE V gradient(M maths, V dy, V y) {
    return dy * (maths.number(1) - y * y);
  }
  template <class A>
  static constexpr OnednnFunction<A> onednn{A::eltwise_tanh};
};

/// x Phi(x), by the error function (Hendrycks & Gimpel 2016).
template <>
struct ActivationOf<Activation::gelu> : ActivationDefaults {
  static constexpr double flops = 4, derivative_flops = 10;
  static constexpr bool takes_input = true;
  template <class M, class V>
  static CROSSOVER_HOST_DEVICE V value(M maths, V x) {
    return x * maths.normal_probability(x);
  }
  template <class M, class V>
  static CROSSOVER_HOST_DEVICE V gradient(M maths, V dy, V x) {
    return dy * (maths.normal_probability(x) + x * maths.normal_density(x));
  }
  template <class A>
  static constexpr OnednnFunction<A> onednn{A::eltwise_gelu_erf};
};

/// Its approximation x (1 + tanh(u)) / 2, which is x sigmoid(2 u).
template <>
struct ActivationOf<Activation::gelu_tanh> : ActivationDefaults {
  static constexpr double flops = 9, derivative_flops = 16;
  static constexpr bool takes_input = true;
  template <class M, class V>
  static CROSSOVER_HOST_DEVICE V value(M maths, V x) {
    return x * sigmoid_of(maths, x * slope(maths, x));
  }
  template <class M, class V>
  static CROSSOVER_HOST_DEVICE V gradient(M maths, V dy, V x) {
    const V factor = slope(maths, x);
    const V s = sigmoid_of(maths, x * factor);
    const V inner = maths.number(3) * factor - maths.number(2 * a);  // 2 u' = a + 3 b x^2
    return dy * (s + x * s * (maths.number(1) - s) * inner);
  }
  template <class A>
  static constexpr OnednnFunction<A> onednn{A::eltwise_gelu_tanh};

 private:
  /// 2 u is x (a + b x^2), where a is 2 sqrt(2 / pi) and b 0.044715 times that.
  static constexpr double a = 1.59576912160573071176, b = 0.07135481627260025;
  template <class M, class V>
  static CROSSOVER_HOST_DEVICE V slope(M maths, V x) {
    return maths.number(a) + maths.number(b) * (x * x);
  }
};

/// x sigmoid(x).
template <>
struct ActivationOf<Activation::silu> : ActivationDefaults {
  static constexpr double flops = 5, derivative_flops = 9;
  static constexpr bool takes_input = true;
  template <class M, class V>
  static CROSSOVER_HOST_DEVICE V value(M maths, V x) {
    return x * sigmoid_of(maths, x);
  }
  template <class M, class V>
  static CROSSOVER_HOST_DEVICE V gradient(M maths, V dy, V x) {
    const V s = sigmoid_of(maths, x);
    return dy * (s * (maths.number(1) + x * (maths.number(1) - s)));
  }
  template <class A>
  static constexpr OnednnFunction<A> onednn{A::eltwise_swish, 1};
};

/// x, held between 0 and 6.
template <>
struct ActivationOf<Activation::relu6> : ActivationDefaults {
  static constexpr double flops = 2, derivative_flops = 2;
  template <class M, class V>
  static CROSSOVER_HOST_DEVICE V value(M maths, V x) {
    return held(maths, 0, x, 6);
  }
  template <class M, class V>
  static CROSSOVER_HOST_DEVICE V gradient(M maths, V dy, V y) {
    return passed_below(maths, 6, dy, y);
  }
  static std::vector<double> kinks() { return {0, 6}; }
  template <class A>
  static constexpr OnednnFunction<A> onednn{A::eltwise_clip, 0, 6};
};

/// x / 6 + 1/2, held between 0 and 1.
template <>
struct ActivationOf<Activation::hardsigmoid> : ActivationDefaults {
  static constexpr double flops = 4, derivative_flops = 3;
  template <class M, class V>
  static CROSSOVER_HOST_DEVICE V value(M maths, V x) {
    return held(maths, 0, x * maths.number(1.0 / 6) + maths.number(0.5), 1);
  }
  template <class M, class V>
  static CROSSOVER_HOST_DEVICE V gradient(M maths, V dy, V y) {
    return passed_below(maths, 1, dy * maths.number(1.0 / 6), y);
  }
  static std::vector<double> kinks() { return {-3, 3}; }
  template <class A>
  static constexpr OnednnFunction<A> onednn{A::eltwise_hardsigmoid, 1.0F / 6, 0.5F};
};

/// x hardsigmoid(x) (Howard et al. 2019).
template <>
struct ActivationOf<Activation::hardswish> : ActivationDefaults {
  static constexpr double flops = 5, derivative_flops = 5;
  static constexpr bool takes_input = true;
  template <class M, class V>
  static CROSSOVER_HOST_DEVICE V value(M maths, V x) {
    return x * ActivationOf<Activation::hardsigmoid>::value(maths, x);
  }
  template <class M, class V>
  static CROSSOVER_HOST_DEVICE V gradient(M maths, V dy, V x) {
    const V between = x * maths.number(1.0 / 3) + maths.number(0.5);
    const V below = maths.where(x < maths.number(3), between, maths.number(1));
    return dy * maths.only_where(x > maths.number(-3), below);
  }
  static std::vector<double> kinks() { return {-3, 3}; }
  template <class A>
  static constexpr OnednnFunction<A> onednn{A::eltwise_hardswish, 1.0F / 6, 0.5F};
};

/// x, or 0.01 x where that is negative.
template <>
struct ActivationOf<Activation::leaky_relu> : ActivationDefaults {
  static constexpr double flops = 2, derivative_flops = 2;
  template <class M, class V>
  static CROSSOVER_HOST_DEVICE V value(M maths, V x) {
    return maths.where(x < maths.number(0), maths.number(0.01) * x, x);
  }
  template <class M, class V>
  static CROSSOVER_HOST_DEVICE V gradient(M maths, V dy, V y) {
    return maths.where(y > maths.number(0), dy, maths.number(0.01) * dy);
  }
  static std::vector<double> kinks() { return {0}; }
  template <class A>
  static constexpr OnednnFunction<A> onednn{A::eltwise_relu, 0.01F};
};

/// work(entry): so a loop knows the activation when it is compiled.
#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Work>
CROSSOVER_HOST_DEVICE constexpr auto with_activation(Activation activation, const Work& work) {
#define CROSSOVER_CASE(name) \
  case Activation::name:     \
    return work(ActivationOf<Activation::name>());
  switch (activation) { CROSSOVER_ACTIVATIONS(CROSSOVER_CASE) }
#undef CROSSOVER_CASE
  __builtin_unreachable();
}
