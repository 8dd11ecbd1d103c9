// SPDX-License-Identifier: Apache-2.0
#include "kernels.h"

#include <algorithm>
#include <array>

// Highway compiles what lies between its markers once for each target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels.cpp"  // NOLINT(cppcoreguidelines-macro-usage): Highway's way
// Without it Highway 1.0.3 does not compile for processors that have those instructions.
#define HWY_WANT_AVX3_DL  // NOLINT
// Arrays of vectors need sizes that are known to the compiler.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)  // NOLINT
#include <hwy/foreach_target.h>
// clang-format off
#include <hwy/highway.h>
#include <hwy/contrib/math/math-inl.h>
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace crossover::cpu::fused::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using Lanes = hn::CappedTag<float, floats_of_line>;
using Four = hn::FixedTag<float, 4>;
using Vector = hn::Vec<Lanes>;
using FourFloats = hn::Vec<Four>;

constexpr std::int64_t lanes = static_cast<std::int64_t>(hn::MaxLanes(Lanes()));

/// Vectors of samples that are computed together with a tile of features, so that sums, factors and
/// one sample fit in the registers: 32 of 512 bits, 16 on older processors.
constexpr int most_vectors = lanes == 16 ? 4 : 2;

/// Features of a tile: with one vector of each, more sums are needed to keep the multipliers busy.
template <int vectors>
constexpr int most_features = vectors == 1 ? 2 * tile : tile;

/// What a tile computes, vector by vector of its features.
template <int features, int vectors>
using Sums = std::array<std::array<Vector, vectors>, features>;

std::int64_t vectors_of(const Batch& batch) { return (batch.rows + lanes - 1) / lanes; }

/// Products go through so many inputs, or outputs, at once: their samples, of as many vectors as a
/// tile has, stay in the first cache while all tiles pass by.
constexpr std::int64_t block = 32768 / (most_vectors * lanes * static_cast<int>(sizeof(float)));

/// Calls work(feature, vector) for each; unrolled, so that sums never leave the registers.
template <int features, int vectors, class Work>
HWY_INLINE void for_each(const Work& work) {
#pragma GCC unroll 8
  for (int f = 0; f < features; ++f) {
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) {
      work(f, v);
    }
  }
}

/// work(integral_constant<count>, first) for as many whole tiles as fit, then for the rest.
template <int most, class Work>
HWY_INLINE void for_each_part(std::int64_t begin, std::int64_t end, const Work& work) {
  for (; end - begin >= most; begin += most) {
    work(std::integral_constant<int, most>{}, begin);
  }
  if constexpr (most > 1) {
    if (begin < end) {
      for_each_part<most - 1>(begin, end, work);
    }
  }
}

/// work(begin, end) for each block of [0, count).
template <class Work>
HWY_INLINE void for_each_block(std::int64_t count, const Work& work) {
  for (std::int64_t begin = 0; begin < count; begin += block) {
    work(begin, std::min(count, begin + block));
  }
}

// ---- forward

void apply_sigmoid(float* y, std::int64_t vectors) {
  const Lanes d;
  const Vector one = hn::Set(d, 1.0F);
  for (std::int64_t v = 0; v < vectors; ++v) {
    const Vector x = hn::Load(d, y + v * lanes);
    hn::Store(hn::Div(one, hn::Add(one, hn::Exp(d, hn::Neg(x)))), d, y + v * lanes);
  }
}

/// What inputs [begin, end) add to `features` outputs of `vectors` times `lanes` samples;
/// everything points to the first of them.
template <int features, int vectors>
void forward_tile(const Layer& layer, std::int64_t stride, std::int64_t begin, std::int64_t end,
                  const float* weights, const float* bias, const float* x, float* y) {
  const Lanes d;
  Sums<features, vectors> sums;
  for_each<features, vectors>([&](int f, int v) {
    sums[f][v] = begin == 0 ? hn::Set(d, bias[f]) : hn::Load(d, y + f * stride + v * lanes);
  });
  for (std::int64_t i = begin; i < end; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      const Vector sample = hn::Load(d, x + i * stride + v * lanes);
#pragma GCC unroll 8
      for (int f = 0; f < features; ++f) {
        sums[f][v] = hn::MulAdd(hn::Set(d, weights[i * layer.ld + f]), sample, sums[f][v]);
      }
    }
  }
  const bool whole = end == layer.in;
  if (whole && layer.activation == Activation::relu) {
    for_each<features, vectors>([&](int f, int v) {  // in this way NaN passes
      sums[f][v] = hn::IfThenElse(hn::Lt(sums[f][v], hn::Zero(d)), hn::Zero(d), sums[f][v]);
    });
  }
  for_each<features, vectors>(
      [&](int f, int v) { hn::Store(sums[f][v], d, y + f * stride + v * lanes); });
  if (whole && layer.activation == Activation::sigmoid) {
    for (int f = 0; f < features; ++f) {
      apply_sigmoid(y + f * stride, vectors);
    }
  }
}

// ---- backward

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

/// What outputs [begin, end) add to dx of `features` inputs of `vectors` times `lanes` samples.
template <int features, int vectors>
void gradient_tile(const Layer& layer, std::int64_t stride, std::int64_t begin, std::int64_t end,
                   const float* weights, const float* dy, const float* x, float* dx,
                   float* dx_rows) {
  const Lanes d;
  Sums<features, vectors> sums;
  for_each<features, vectors>([&](int f, int v) {
    sums[f][v] = begin == 0 ? hn::Zero(d) : hn::Load(d, dx + f * stride + v * lanes);
  });
  for (std::int64_t o = begin; o < end; ++o) {
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      const Vector gradient = hn::Load(d, dy + o * stride + v * lanes);
#pragma GCC unroll 8
      for (int f = 0; f < features; ++f) {
        sums[f][v] = hn::MulAdd(hn::Set(d, weights[f * layer.ld + o]), gradient, sums[f][v]);
      }
    }
  }
  const bool whole = end == layer.out;
  const auto y = [&](int f, int v) { return hn::Load(d, x + f * stride + v * lanes); };
  if (whole && layer.x_activation == Activation::relu) {
    for_each<features, vectors>([&](int f, int v) {
      sums[f][v] = hn::IfThenElseZero(hn::Gt(y(f, v), hn::Zero(d)), sums[f][v]);
    });
  } else if (whole && layer.x_activation == Activation::sigmoid) {
    for_each<features, vectors>([&](int f, int v) {
      const Vector derivative = hn::Mul(y(f, v), hn::Sub(hn::Set(d, 1.0F), y(f, v)));
      sums[f][v] = hn::Mul(sums[f][v], derivative);
    });
  }
  for_each<features, vectors>(
      [&](int f, int v) { hn::Store(sums[f][v], d, dx + f * stride + v * lanes); });
  if (whole && dx_rows != nullptr) {
    const std::int64_t ld = whole_lines(layer.in);
    const auto at = [&](int f, int v) { return f < features ? sums[f][v] : hn::Zero(d); };
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
HWY_INLINE void update_parameters(D d, const Parameters& of, hn::Vec<D> gradient, float rate,
                                  const AdamWFactors<float>& factors) {
  if (of.gradient != nullptr) {
    hn::StoreU(gradient, d, of.gradient);
  }
  const auto w = hn::LoadU(d, of.w);
  if (of.m == nullptr) {
    hn::StoreU(hn::NegMulAdd(hn::Set(d, rate), gradient, w), d, of.w);
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
HWY_INLINE FourFloats sums_of_lanes(const std::array<Vector, 4>& of) {
  const Lanes d;
  const hn::Repartition<double, Lanes> pairs;
  const Vector ab =
      hn::Add(hn::InterleaveLower(d, of[0], of[1]), hn::InterleaveUpper(d, of[0], of[1]));
  const Vector cd =
      hn::Add(hn::InterleaveLower(d, of[2], of[3]), hn::InterleaveUpper(d, of[2], of[3]));
  const auto low = hn::InterleaveLower(pairs, hn::BitCast(pairs, ab), hn::BitCast(pairs, cd));
  const auto high = hn::InterleaveUpper(pairs, hn::BitCast(pairs, ab), hn::BitCast(pairs, cd));
  return sum_of_blocks(d, hn::Add(hn::BitCast(d, low), hn::BitCast(d, high)));
}

/// The update of the weights from `features` inputs to all outputs, with samples along the lanes: a
/// sum over lanes for each. For few outputs. x points to the first input.
template <int features>
void update_by_lanes(const Layer& layer, const Batch& batch, const Update& update, const float* x,
                     const Parameters& weights) {
  const Lanes d;
  const std::int64_t vectors = vectors_of(batch);
  for (std::int64_t o = 0; o < layer.out; o += tile) {
    // dy has rows for a whole tile; those past the last output are zero.
    const float* dy = layer.dy + o * batch.stride;
    Sums<features, tile> sums;
    for_each<features, tile>([&](int f, int i) { sums[f][i] = hn::Zero(d); });
    for (std::int64_t v = 0; v < vectors; ++v) {
      std::array<Vector, tile> gradient;
      for_each<1, tile>(
          [&](int /*f*/, int i) { gradient[i] = hn::Load(d, dy + i * batch.stride + v * lanes); });
#pragma GCC unroll 4
      for (int f = 0; f < features; ++f) {
        const Vector sample = hn::Load(d, x + f * batch.stride + v * lanes);
        for_each<1, tile>(
            [&](int /*f*/, int i) { sums[f][i] = hn::MulAdd(sample, gradient[i], sums[f][i]); });
      }
    }
    for_each<features, 1>([&](int f, int /*v*/) {
      update_parameters(Four(), weights.from(f * layer.ld + o), sums_of_lanes(sums[f]), update.rate,
                        update.of_weights);
    });
  }
}

/// The same, with `vectors` times `lanes` outputs along the lanes: sample by sample.
template <int features, int vectors>
void update_tile(const Layer& layer, const Batch& batch, const Update& update, const float* x,
                 const float* dy_rows, const Parameters& weights) {
  const Lanes d;
  const std::int64_t ld = whole_lines(layer.out);
  Sums<features, vectors> sums;
  for_each<features, vectors>([&](int f, int v) { sums[f][v] = hn::Zero(d); });
  for (std::int64_t row = 0; row < batch.rows; ++row) {
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      const Vector gradient = hn::Load(d, dy_rows + row * ld + v * lanes);
#pragma GCC unroll 8
      for (int f = 0; f < features; ++f) {
        sums[f][v] = hn::MulAdd(hn::Set(d, x[f * batch.stride + row]), gradient, sums[f][v]);
      }
    }
  }
  for_each<features, vectors>([&](int f, int v) {
    update_parameters(d, weights.from(f * layer.ld + v * lanes), sums[f][v], update.rate,
                      update.of_weights);
  });
}

void gather(const float* data, std::int64_t ld, const Batch& batch, float* x, std::int64_t begin,
            std::int64_t end) {
  const Lanes d;
  const std::int64_t vectors = vectors_of(batch);
  const auto last = hn::FirstN(d, static_cast<std::size_t>(batch.rows - (vectors - 1) * lanes));
  for (std::int64_t i = begin; i < end; ++i) {
    const float* from = data + i * ld;
    float* to = x + i * batch.stride;
    for (std::int64_t v = 0; v + 1 < vectors; ++v) {
      hn::Store(hn::LoadU(d, from + v * lanes), d, to + v * lanes);
    }
    const std::int64_t at = (vectors - 1) * lanes;
    hn::Store(hn::IfThenElseZero(last, hn::LoadU(d, from + at)), d, to + at);
  }
}

void forward(const Layer& layer, const Batch& batch, std::int64_t begin, std::int64_t end) {
  for_each_part<most_vectors>(0, vectors_of(batch), [&](auto vectors, std::int64_t v) {
    for_each_block(layer.in, [&](std::int64_t first, std::int64_t last) {
      for_each_part<most_features<vectors>>(begin, end, [&](auto features, std::int64_t o) {
        forward_tile<features, vectors>(layer, batch.stride, first, last, layer.weights + o,
                                        layer.bias + o, layer.x + v * lanes,
                                        layer.y + o * batch.stride + v * lanes);
      });
    });
  });
}

void backward(const Layer& layer, const Batch& batch, const Update& update, std::int64_t begin,
              std::int64_t end) {
  const Parameters all{layer.weights, layer.dw, layer.m, layer.v};
  const auto x = [&](std::int64_t i) { return layer.x + i * batch.stride; };
  if (layer.dx != nullptr) {  // from the weights before their update
    for_each_part<most_vectors>(0, vectors_of(batch), [&](auto vectors, std::int64_t v) {
      for_each_block(layer.out, [&](std::int64_t first, std::int64_t last) {
        for_each_part<most_features<vectors>>(begin, end, [&](auto features, std::int64_t i) {
          const std::int64_t at = v * lanes;
          gradient_tile<features, vectors>(
              layer, batch.stride, first, last, layer.weights + i * layer.ld, layer.dy + at,
              x(i) + at, layer.dx + i * batch.stride + at,
              layer.dx_rows == nullptr ? nullptr : layer.dx_rows + at * whole_lines(layer.in) + i);
        });
      });
    });
  }
  if (layer.dy_rows == nullptr) {
    for_each_part<tile>(begin, end, [&](auto features, std::int64_t i) {
      update_by_lanes<features>(layer, batch, update, x(i), all.from(i * layer.ld));
    });
    return;
  }
  const std::int64_t vectors_of_outputs = (layer.out + lanes - 1) / lanes;
  for_each_part<most_vectors>(0, vectors_of_outputs, [&](auto vectors, std::int64_t v) {
    for_each_part<most_features<vectors>>(begin, end, [&](auto features, std::int64_t i) {
      update_tile<features, vectors>(layer, batch, update, x(i), layer.dy_rows + v * lanes,
                                     all.from(i * layer.ld + v * lanes));
    });
  });
}

void bias(const Layer& layer, const Batch& batch, const Update& update, std::int64_t begin,
          std::int64_t end) {
  const Lanes d;
  const std::int64_t vectors = vectors_of(batch);
  for (std::int64_t o = begin; o < end; o += tile) {
    std::array<Vector, tile> sums;
    sums.fill(hn::Zero(d));
    for (std::int64_t v = 0; v < vectors; ++v) {
      for (int i = 0; i < tile; ++i) {
        sums[i] = hn::Add(sums[i], hn::Load(d, layer.dy + (o + i) * batch.stride + v * lanes));
      }
    }
    update_parameters(Four(),
                      Parameters{layer.bias, layer.dbias, layer.bias_m, layer.bias_v}.from(o),
                      sums_of_lanes(sums), update.rate, update.of_biases);
  }
}

double loss(const Loss& of, const Batch& batch, std::int64_t begin, std::int64_t end) {
  const Lanes d;
  const hn::RebindToSigned<Lanes> whole;
  const Vector factor = hn::Set(d, of.factor);
  Vector sum_of_losses = hn::Zero(d);
  for (std::int64_t row = begin; row < end; row += lanes) {
    const auto rows = std::clamp<std::int64_t>(batch.rows - row, 0, lanes);
    const auto inside = hn::FirstN(d, static_cast<std::size_t>(rows));
    const auto labels = hn::LoadU(whole, of.labels + row);
    const auto is_label = [&](std::int64_t c) {
      return hn::RebindMask(d, hn::Eq(labels, hn::Set(whole, static_cast<std::int32_t>(c))));
    };
    const float* logits = of.logits + row;
    float* gradients = of.dlogits + row;
    Vector largest = hn::Load(d, logits);
    for (std::int64_t c = 1; c < of.classes; ++c) {
      largest = hn::Max(largest, hn::Load(d, logits + c * batch.stride));
    }
    Vector sum = hn::Zero(d);
    Vector at_label = hn::Zero(d);
    for (std::int64_t c = 0; c < of.classes; ++c) {
      const Vector logit = hn::Load(d, logits + c * batch.stride);
      const Vector e = hn::Exp(d, hn::Sub(logit, largest));
      sum = hn::Add(sum, e);
      at_label = hn::IfThenElse(is_label(c), logit, at_label);
      hn::Store(e, d, gradients + c * batch.stride);
    }
    const Vector losses = hn::Add(hn::Sub(largest, at_label), hn::Log(d, sum));
    sum_of_losses = hn::Add(sum_of_losses, hn::IfThenElseZero(inside, losses));
    const Vector normalized = hn::Div(factor, sum);
    for (std::int64_t c = 0; c < of.classes; ++c) {
      const Vector share = hn::Mul(hn::Load(d, gradients + c * batch.stride), normalized);
      const Vector gradient = hn::Sub(share, hn::IfThenElseZero(is_label(c), factor));
      hn::Store(hn::IfThenElseZero(inside, gradient), d, gradients + c * batch.stride);
    }
  }
  return hn::GetLane(hn::SumOfLanes(d, sum_of_losses));
}

}  // namespace

Kernels kernels() {
  return {.gather = gather,
          .forward = forward,
          .loss = loss,
          .backward = backward,
          .bias = bias,
          .instructions = hwy::TargetName(HWY_TARGET)};
}

}  // namespace crossover::cpu::fused::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace crossover::cpu::fused {

HWY_EXPORT(kernels);

Kernels best_kernels() { return HWY_DYNAMIC_DISPATCH(kernels)(); }

}  // namespace crossover::cpu::fused
#endif
