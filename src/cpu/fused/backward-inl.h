// SPDX-License-Identifier: Apache-2.0
// A layer's gradients, and its update.
// Compiled once for each target (Highway), so the guard opens again for each.
#if defined(CROSSOVER_CPU_FUSED_BACKWARD_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef CROSSOVER_CPU_FUSED_BACKWARD_INL_H
#undef CROSSOVER_CPU_FUSED_BACKWARD_INL_H
#else
#define CROSSOVER_CPU_FUSED_BACKWARD_INL_H
#endif

// clang-format off
#include "kernels.h"
#include "maths-inl.h"
#include "tiles-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace crossover::cpu::fused::HWY_NAMESPACE {
namespace {

/// Stores four features of some samples, [4][samples], sample by sample: [samples][ld].
template <class D>
HWY_INLINE void store_blocks(D /*d*/, hn::Vec<D> v, std::int64_t ld, float* to) {
  if constexpr (hn::MaxLanes(D()) > 4) {
    const hn::Half<D> half;
    store_blocks(half, hn::LowerHalf(half, v), ld, to);
    store_blocks(half, hn::UpperHalf(half, v), ld,
                 to + static_cast<std::int64_t>(hn::MaxLanes(half)) * ld);
  } else {
    hn::Store(v, D(), to);
  }
}

HWY_INLINE void store_transposed(Vector a, Vector b, Vector c, Vector e, std::int64_t ld,
                                 float* to) {
  const Lanes d;
  const hn::Repartition<double, Lanes> pairs;
  const auto low = [&](Vector one, Vector other) {
    return hn::BitCast(pairs, hn::InterleaveLower(d, one, other));
  };
  const auto high = [&](Vector one, Vector other) {
    return hn::BitCast(pairs, hn::InterleaveUpper(d, one, other));
  };
  const auto store = [&](auto four, int row) {
    store_blocks(d, hn::BitCast(d, four), ld, to + row * ld);
  };
  store(hn::InterleaveLower(pairs, low(a, b), low(c, e)), 0);
  store(hn::InterleaveUpper(pairs, low(a, b), low(c, e)), 1);
  store(hn::InterleaveLower(pairs, high(a, b), high(c, e)), 2);
  store(hn::InterleaveUpper(pairs, high(a, b), high(c, e)), 3);
}

/// gradients(f, v) times the derivative where the activation gave y(f, v), which, of those that
/// derivative_takes_input(), is the derivative itself.
template <int features, int vectors, class Y>
HWY_INLINE void times_derivative(Activation activation, Sums<features, vectors>& gradients,
                                 const Y& y) {
  if (derivative_takes_input(activation)) {
    return for_each<features, vectors>(
        [&](int f, int v) { gradients(f, v) = hn::Mul(gradients(f, v), y(f, v)); });
  }
  HWY_NAMESPACE::with_activation(activation, [&](auto of) {
    if constexpr (!decltype(of)::takes_input) {
      for_each<features, vectors>([&](int f, int v) {
        gradients(f, v) = decltype(of)::gradient(LaneMaths(), gradients(f, v), y(f, v));
      });
    }
  });
}

/// What outputs [begin, end) add to dx of `features` inputs of `vectors` times `lanes` samples,
/// which begin at `to`.
template <int features, int vectors>
void gradient_tile(const Layer& layer, std::int64_t stride, std::int64_t begin, std::int64_t end,
                   const float* weights, const float* dy, std::int64_t to, float* dx_rows) {
  const Lanes d;
  const float* y_or_slope = (layer.x_slope == nullptr ? layer.x : layer.x_slope) + to;
  float* dx = layer.dx + to;
  Sums<features, vectors> sums;
  for_each<features, vectors>([&](int f, int v) {
    sums(f, v) = begin == 0 ? hn::Zero(d) : hn::Load(d, dx + f * stride + v * lanes);
  });
  for (std::int64_t o = begin; o < end; ++o) {
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      const Vector gradient = loaded(dy + o * stride + v * lanes);
#pragma GCC unroll 8
      for (int f = 0; f < features; ++f) {
        sums(f, v) = hn::MulAdd(hn::Set(d, weights[f * layer.ld + o]), gradient, sums(f, v));
      }
    }
  }
  const bool whole = end == layer.out;
  const auto y = [&](int f, int v) { return hn::Load(d, y_or_slope + f * stride + v * lanes); };
  if (whole && layer.product != nullptr) {
    for_each<features, vectors>([&](int f, int v) {
      hn::Store(sums(f, v), d, layer.product + to + f * stride + v * lanes);
    });
  }
  if (whole && layer.x_activation != Activation::identity) {
    times_derivative(layer.x_activation, sums, y);
  }
  for_each<features, vectors>(
      [&](int f, int v) { hn::Store(sums(f, v), d, dx + f * stride + v * lanes); });
  if (whole && dx_rows != nullptr) {
    const std::int64_t ld = whole_lines(layer.in);
    const auto at = [&](int f, int v) { return f < features ? sums(f, v) : hn::Zero(d); };
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
#pragma GCC unroll 2
      for (int f = 0; f < features; f += 4) {
        store_transposed(at(f, v), at(f + 1, v), at(f + 2, v), at(f + 3, v), ld,
                         dx_rows + v * lanes * ld + f);
      }
    }
  }
}

/// Parameters and what belongs to them, from the first of them on.
struct Parameters {
  float *w, *gradient, *m, *v;

  [[nodiscard]] Parameters from(std::int64_t offset) const {
    const auto moved = [offset](float* array) { return array == nullptr ? array : array + offset; };
    return {moved(w), moved(gradient), moved(m), moved(v)};
  }
};

/// As many of them as D has lanes.
template <class D>
HWY_INLINE void update_parameters(D d, const Parameters& of, hn::Vec<D> gradient, const Update& by,
                                  const AdamWFactors<float>& factors) {
  if (of.gradient != nullptr) {
    hn::StoreU(gradient, d, of.gradient);
  }
  const auto w = hn::LoadU(d, of.w);
  if (of.m == nullptr) {
    hn::StoreU(hn::NegMulAdd(hn::Set(d, by.rate), gradient, w), d, of.w);
    return;
  }
  if (of.v == nullptr) {
    const auto velocity = hn::MulAdd(hn::Set(d, by.momentum), hn::LoadU(d, of.m),
                                     hn::Mul(hn::Set(d, by.gradient_factor), gradient));
    hn::StoreU(velocity, d, of.m);
    hn::StoreU(hn::NegMulAdd(hn::Set(d, by.rate), velocity, w), d, of.w);
    return;
  }
  const auto g = hn::Mul(hn::Set(d, factors.gradient_factor), gradient);
  const auto m = hn::MulAdd(hn::Set(d, factors.beta1), hn::LoadU(d, of.m),
                            hn::Mul(hn::Set(d, factors.one_minus_beta1), g));
  const auto v = hn::MulAdd(hn::Set(d, factors.beta2), hn::LoadU(d, of.v),
                            hn::Mul(hn::Mul(hn::Set(d, factors.one_minus_beta2), g), g));
  const auto scale = hn::MulAdd(hn::Sqrt(v), hn::Set(d, factors.inverse_root_correction),
                                hn::Set(d, factors.epsilon));
  const auto step = hn::Div(hn::Mul(hn::Set(d, factors.step_size), m), scale);
  hn::StoreU(m, d, of.m);
  hn::StoreU(v, d, of.v);
  hn::StoreU(hn::Sub(hn::Mul(hn::Set(d, factors.keep), w), step), d, of.w);
}

template <class D>
HWY_INLINE FourFloats sum_of_blocks(D /*d*/, hn::Vec<D> v) {
  if constexpr (hn::MaxLanes(D()) > 4) {
    const hn::Half<D> half;
    return sum_of_blocks(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  } else {
    return v;
  }
}

/// The sums of the lanes of four vectors.
HWY_INLINE FourFloats sums_of_lanes(Vector a, Vector b, Vector c, Vector e) {
  const Lanes d;
  const hn::Repartition<double, Lanes> pairs;
  const Vector ab = hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b));
  const Vector cd = hn::Add(hn::InterleaveLower(d, c, e), hn::InterleaveUpper(d, c, e));
  const auto low = hn::InterleaveLower(pairs, hn::BitCast(pairs, ab), hn::BitCast(pairs, cd));
  const auto high = hn::InterleaveUpper(pairs, hn::BitCast(pairs, ab), hn::BitCast(pairs, cd));
  return sum_of_blocks(d, hn::Add(hn::BitCast(d, low), hn::BitCast(d, high)));
}

/// The gradients of the weights from `features` inputs to all outputs, with samples along the
/// lanes: a sum over lanes for each. For few outputs. x points to the first input; use(d, offset
/// from its weights, gradients).
template <int features, class Use>
void weights_by_lanes(const Layer& layer, const Batch& batch, const float* x, const Use& use) {
  const Lanes d;
  const std::int64_t vectors = vectors_of(batch);
  for (std::int64_t o = 0; o < layer.out; o += tile) {
    // dy has rows for a whole tile; those past the last output are zero.
    const float* dy = layer.dy + o * batch.stride;
    Sums<features, tile> sums;
    for_each<features, tile>([&](int f, int i) { sums(f, i) = hn::Zero(d); });
    for (std::int64_t v = 0; v < vectors; ++v) {
      Sums<1, tile> gradient;
      for_each<1, tile>(
          [&](int /*f*/, int i) { gradient(0, i) = loaded(dy + i * batch.stride + v * lanes); });
#pragma GCC unroll 4
      for (int f = 0; f < features; ++f) {
        const Vector sample = loaded(x + f * batch.stride + v * lanes);
        for_each<1, tile>(
            [&](int /*f*/, int i) { sums(f, i) = hn::MulAdd(sample, gradient(0, i), sums(f, i)); });
      }
    }
    for_each<features, 1>([&](int f, int /*v*/) {
      use(Four(), f * layer.ld + o, sums_of_lanes(sums(f, 0), sums(f, 1), sums(f, 2), sums(f, 3)));
    });
  }
}

/// The same, with `vectors` times `lanes` outputs along the lanes: sample by sample.
template <int features, int vectors, class Use>
void weights_tile(const Layer& layer, const Batch& batch, const float* x, const float* dy_rows,
                  const Use& use) {
  const Lanes d;
  const std::int64_t ld = whole_lines(layer.out);
  Sums<features, vectors> sums;
  for_each<features, vectors>([&](int f, int v) { sums(f, v) = hn::Zero(d); });
  for (std::int64_t row = 0; row < batch.rows; ++row) {
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      const Vector gradient = loaded(dy_rows + row * ld + v * lanes);
#pragma GCC unroll 8
      for (int f = 0; f < features; ++f) {
        sums(f, v) = hn::MulAdd(hn::Set(d, x[f * batch.stride + row]), gradient, sums(f, v));
      }
    }
  }
  for_each<features, vectors>([&](int f, int v) { use(d, f * layer.ld + v * lanes, sums(f, v)); });
}

/// use(d, offset, gradients) for the weights of inputs [begin, end).
template <class Use>
HWY_INLINE void for_each_weight(const Layer& layer, const Batch& batch, std::int64_t begin,
                                std::int64_t end, const Use& use) {
  const auto x = [&](std::int64_t i) { return layer.x + i * batch.stride; };
  const auto use_from = [&](std::int64_t first) {
    return [&use, first](auto d, std::int64_t offset, auto gradients) {
      use(d, first + offset, gradients);
    };
  };
  if (layer.dy_rows == nullptr) {
    for_each_part<tile>(begin, end, [&](auto features, std::int64_t i) {
      weights_by_lanes<features>(layer, batch, x(i), use_from(i * layer.ld));
    });
    return;
  }
  const std::int64_t vectors_of_outputs = (layer.out + lanes - 1) / lanes;
  for_each_part<most_vectors>(0, vectors_of_outputs, [&](auto vectors, std::int64_t v) {
    for_each_part<most_features<vectors>>(begin, end, [&](auto features, std::int64_t i) {
      weights_tile<features, vectors>(layer, batch, x(i), layer.dy_rows + v * lanes,
                                      use_from(i * layer.ld + v * lanes));
    });
  });
}

/// use(d, offset, gradients) for the biases of outputs [begin, end).
template <class Use>
HWY_INLINE void for_each_bias(const Layer& layer, const Batch& batch, std::int64_t begin,
                              std::int64_t end, const Use& use) {
  const Lanes d;
  const std::int64_t vectors = vectors_of(batch);
  for (std::int64_t o = begin; o < end; o += tile) {
    Sums<tile, 1> sums;
    for_each<tile, 1>([&](int i, int /*v*/) { sums(i, 0) = hn::Zero(d); });
    for (std::int64_t v = 0; v < vectors; ++v) {
      for (int i = 0; i < tile; ++i) {
        sums(i, 0) =
            hn::Add(sums(i, 0), hn::Load(d, layer.dy + (o + i) * batch.stride + v * lanes));
      }
    }
    use(Four(), o, sums_of_lanes(sums(0, 0), sums(1, 0), sums(2, 0), sums(3, 0)));
  }
}

/// Stores gradients among the own ones.
HWY_INLINE auto store_in(const PartialSums& sums) {
  float* own = sums.first + sums.own * sums.stride;
  return [own](auto d, std::int64_t offset, auto gradients) {
    hn::StoreU(gradients, d, own + offset);
  };
}

/// `gradients` and what the other parts of the batch have.
template <class D>
HWY_INLINE hn::Vec<D> with_others(D d, const PartialSums& sums, std::int64_t offset,
                                  hn::Vec<D> gradients) {
  for (int part = 0; part < sums.parts; ++part) {
    if (part != sums.own) {
      gradients = hn::Add(gradients, hn::LoadU(d, sums.first + part * sums.stride + offset));
    }
  }
  return gradients;
}

inline void gradient(const Layer& layer, const Batch& batch, std::int64_t begin, std::int64_t end) {
  for_each_part<most_vectors>(0, vectors_of(batch), [&](auto vectors, std::int64_t v) {
    for_each_block(layer.out, [&](std::int64_t first, std::int64_t last) {
      for_each_part<most_features<vectors>>(begin, end, [&](auto features, std::int64_t i) {
        const std::int64_t at = v * lanes;
        gradient_tile<features, vectors>(
            layer, batch.stride, first, last, layer.weights + i * layer.ld, layer.dy + at,
            i * batch.stride + at,
            layer.dx_rows == nullptr ? nullptr : layer.dx_rows + at * whole_lines(layer.in) + i);
      });
    });
  });
}

inline void sum(const Layer& layer, const Batch& batch, std::int64_t begin, std::int64_t end) {
  for_each_weight(layer, batch, begin, end, store_in(layer.dw_sums));
}

inline void sum_bias(const Layer& layer, const Batch& batch, std::int64_t begin, std::int64_t end) {
  for_each_bias(layer, batch, begin, end, store_in(layer.dbias_sums));
}

inline void update(const Layer& layer, const Batch& batch, const Update& by, std::int64_t begin,
                   std::int64_t end) {
  const Parameters all{layer.weights, layer.dw, layer.m, layer.v};
  for_each_weight(layer, batch, begin, end, [&](auto d, std::int64_t offset, auto gradients) {
    update_parameters(d, all.from(offset), with_others(d, layer.dw_sums, offset, gradients), by,
                      by.of_weights);
  });
}

inline void update_bias(const Layer& layer, const Batch& batch, const Update& by,
                        std::int64_t begin, std::int64_t end) {
  const Parameters all{layer.bias, layer.dbias, layer.bias_m, layer.bias_v};
  for_each_bias(layer, batch, begin, end, [&](auto d, std::int64_t offset, auto gradients) {
    update_parameters(d, all.from(offset), with_others(d, layer.dbias_sums, offset, gradients), by,
                      by.of_biases);
  });
}

}  // namespace
}  // namespace crossover::cpu::fused::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
