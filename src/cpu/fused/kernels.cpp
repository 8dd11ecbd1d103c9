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
constexpr int samples_of_tile = lanes == 16 ? 4 : 2;

std::int64_t vectors_of(const Batch& batch) { return (batch.rows + lanes - 1) / lanes; }

Vector activated(Activation activation, Vector x) {
  const Lanes d;
  switch (activation) {
    case Activation::relu:
      return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Zero(d), x);  // NaN passes
    case Activation::sigmoid: {
      const Vector one = hn::Set(d, 1.0F);
      return hn::Div(one, hn::Add(one, hn::Exp(d, hn::Neg(x))));
    }
    case Activation::identity:
      break;
  }
  return x;
}

/// Times the derivative where the activation gave y.
Vector times_derivative(Activation activation, Vector gradient, Vector y) {
  const Lanes d;
  switch (activation) {
    case Activation::relu:
      return hn::IfThenElseZero(hn::Gt(y, hn::Zero(d)), gradient);
    case Activation::sigmoid:
      return hn::Mul(gradient, hn::Mul(y, hn::Sub(hn::Set(d, 1.0F), y)));
    case Activation::identity:
      break;
  }
  return gradient;
}

// ---- forward

/// `features` outputs of `vectors` times `lanes` samples; everything points to the first of them.
template <int features, int vectors>
void forward_tile(const Layer& layer, std::int64_t stride, const float* weights, const float* bias,
                  const float* x, float* y) {
  const Lanes d;
  std::array<std::array<Vector, vectors>, features> sums;
  for (int f = 0; f < features; ++f) {
    for (int v = 0; v < vectors; ++v) {
      sums[f][v] = hn::Set(d, bias[f]);
    }
  }
  for (std::int64_t i = 0; i < layer.in; ++i) {
    for (int v = 0; v < vectors; ++v) {
      const Vector sample = hn::Load(d, x + i * stride + v * lanes);
      for (int f = 0; f < features; ++f) {
        sums[f][v] = hn::MulAdd(hn::Set(d, weights[i * layer.ld + f]), sample, sums[f][v]);
      }
    }
  }
  for (int f = 0; f < features; ++f) {
    for (int v = 0; v < vectors; ++v) {
      hn::Store(activated(layer.activation, sums[f][v]), d, y + f * stride + v * lanes);
    }
  }
}

// ---- backward

/// dx of `features` inputs of `vectors` times `lanes` samples.
template <int features, int vectors>
void gradient_tile(const Layer& layer, std::int64_t stride, const float* weights, const float* dy,
                   const float* x, float* dx) {
  const Lanes d;
  std::array<std::array<Vector, vectors>, features> sums;
  for (auto& of_feature : sums) {
    of_feature.fill(hn::Zero(d));
  }
  for (std::int64_t o = 0; o < layer.out; ++o) {
    for (int v = 0; v < vectors; ++v) {
      const Vector gradient = hn::Load(d, dy + o * stride + v * lanes);
      for (int f = 0; f < features; ++f) {
        sums[f][v] = hn::MulAdd(hn::Set(d, weights[f * layer.ld + o]), gradient, sums[f][v]);
      }
    }
  }
  for (int f = 0; f < features; ++f) {
    for (int v = 0; v < vectors; ++v) {
      const std::int64_t at = f * stride + v * lanes;
      const Vector y = hn::Load(d, x + at);
      hn::Store(times_derivative(layer.x_activation, sums[f][v], y), d, dx + at);
    }
  }
}

template <class D>
FourFloats sum_of_blocks(D /*d*/, hn::Vec<D> v) {
  if constexpr (hn::MaxLanes(D()) > 4) {
    const hn::Half<D> half;
    return sum_of_blocks(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  } else {
    return v;
  }
}

/// The sums of the lanes of four vectors.
FourFloats sums_of_lanes(const std::array<Vector, 4>& of) {
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

/// Parameters and what belongs to them, from the first of them on.
struct Parameters {
  float *w, *gradient, *m, *v;

  [[nodiscard]] Parameters from(std::int64_t offset) const {
    const auto moved = [offset](float* array) { return array == nullptr ? array : array + offset; };
    return {moved(w), moved(gradient), moved(m), moved(v)};
  }
};

void update_four(const Parameters& of, FourFloats gradient, float rate,
                 const AdamWFactors<float>& factors) {
  const Four d;
  if (of.gradient != nullptr) {
    hn::StoreU(gradient, d, of.gradient);
  }
  const FourFloats w = hn::LoadU(d, of.w);
  if (of.m == nullptr) {
    hn::StoreU(hn::NegMulAdd(hn::Set(d, rate), gradient, w), d, of.w);
    return;
  }
  const FourFloats g = hn::Mul(hn::Set(d, factors.gradient_factor), gradient);
  const FourFloats m = hn::MulAdd(hn::Set(d, factors.beta1), hn::LoadU(d, of.m),
                                  hn::Mul(hn::Set(d, factors.one_minus_beta1), g));
  const FourFloats v = hn::MulAdd(hn::Set(d, factors.beta2), hn::LoadU(d, of.v),
                                  hn::Mul(hn::Mul(hn::Set(d, factors.one_minus_beta2), g), g));
  const FourFloats scale = hn::MulAdd(hn::Sqrt(v), hn::Set(d, factors.inverse_root_correction),
                                      hn::Set(d, factors.epsilon));
  const FourFloats step = hn::Div(hn::Mul(hn::Set(d, factors.step_size), m), scale);
  hn::StoreU(m, d, of.m);
  hn::StoreU(v, d, of.v);
  hn::StoreU(hn::Sub(hn::Mul(hn::Set(d, factors.keep), w), step), d, of.w);
}

/// The update of the weights from `features` inputs to all outputs. x points to the first of them.
template <int features>
void update_weights(const Layer& layer, const Batch& batch, const Update& update, const float* x,
                    const Parameters& weights) {
  const Lanes d;
  const std::int64_t vectors = vectors_of(batch);
  for (std::int64_t o = 0; o < layer.out; o += tile) {
    // dy has rows for a whole tile; those past the last output are zero.
    const float* dy = layer.dy + o * batch.stride;
    std::array<std::array<Vector, tile>, features> sums;
    for (auto& of_feature : sums) {
      of_feature.fill(hn::Zero(d));
    }
    for (std::int64_t v = 0; v < vectors; ++v) {
      std::array<Vector, tile> gradient;
      for (int i = 0; i < tile; ++i) {
        gradient[i] = hn::Load(d, dy + i * batch.stride + v * lanes);
      }
      for (int f = 0; f < features; ++f) {
        const Vector sample = hn::Load(d, x + f * batch.stride + v * lanes);
        for (int i = 0; i < tile; ++i) {
          sums[f][i] = hn::MulAdd(sample, gradient[i], sums[f][i]);
        }
      }
    }
    for (int f = 0; f < features; ++f) {
      update_four(weights.from(f * layer.ld + o), sums_of_lanes(sums[f]), update.rate,
                  update.of_weights);
    }
  }
}

// ---- parts of any size as tiles

/// work(integral_constant<count>, first) for as many whole tiles as fit, then for the rest.
template <int most, class Work>
void for_each_part(std::int64_t begin, std::int64_t end, const Work& work) {
  for (; end - begin >= most; begin += most) {
    work(std::integral_constant<int, most>{}, begin);
  }
  if constexpr (most > 1) {
    for_each_part<most - 1>(begin, end, work);
  }
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
  for_each_part<samples_of_tile>(0, vectors_of(batch), [&](auto vectors, std::int64_t v) {
    for_each_part<tile>(begin, end, [&](auto features, std::int64_t o) {
      forward_tile<features, vectors>(layer, batch.stride, layer.weights + o, layer.bias + o,
                                      layer.x + v * lanes, layer.y + o * batch.stride + v * lanes);
    });
  });
}

void backward(const Layer& layer, const Batch& batch, const Update& update, std::int64_t begin,
              std::int64_t end) {
  for_each_part<tile>(begin, end, [&](auto features, std::int64_t i) {
    const float* x = layer.x + i * batch.stride;
    const Parameters weights =
        Parameters{layer.weights, layer.dw, layer.m, layer.v}.from(i * layer.ld);
    if (layer.dx != nullptr) {  // from the weights before their update
      for_each_part<samples_of_tile>(0, vectors_of(batch), [&](auto vectors, std::int64_t v) {
        gradient_tile<features, vectors>(layer, batch.stride, weights.w, layer.dy + v * lanes,
                                         x + v * lanes, layer.dx + i * batch.stride + v * lanes);
      });
    }
    update_weights<features>(layer, batch, update, x, weights);
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
    update_four(Parameters{layer.bias, layer.dbias, layer.bias_m, layer.bias_v}.from(o),
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
