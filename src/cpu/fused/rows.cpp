// SPDX-License-Identifier: Apache-2.0
// A training step of few samples, which would leave most lanes idle: features lie along the lanes
// of vectors, and each sample is a row of a matrix (see Batch).
#include "../base/targets.h"
#include "kernels.h"

// Highway compiles what lies between its markers once for each target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rows.cpp"  // NOLINT(cppcoreguidelines-macro-usage): Highway's way
#include <hwy/foreach_target.h>
// clang-format off
#include <hwy/highway.h>

#include "backward-inl.h"
#include "forward-inl.h"
#include "loss-inl.h"
#include "pass-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace crossover::cpu::fused::HWY_NAMESPACE {
namespace {

std::int64_t vectors_of_features(std::int64_t features) { return (features + lanes - 1) / lanes; }

/// work(integral_constant<rows>): a batch has few_samples at most.
template <class Work>
HWY_INLINE void with_rows(const Batch& batch, const Work& work) {
  for_each_part<few_samples>(0, batch.rows, [&](auto rows, std::int64_t /*row*/) { work(rows); });
}

void gather_by_rows(const float* data, std::int64_t ld, const Batch& batch, float* x,
                    std::int64_t begin, std::int64_t end) {
  for (std::int64_t row = 0; row < batch.rows; ++row) {
    std::copy_n(data + row * ld + begin, end - begin, x + row * whole_lines(ld) + begin);
  }
}

void forward_by_rows(const Layer& layer, const Batch& batch, std::int64_t begin, std::int64_t end) {
  const PassLayer product{.in = layer.in,
                          .out = layer.out,
                          .ld = layer.ld,
                          .x_stride = whole_lines(layer.in),
                          .y_stride = whole_lines(layer.out),
                          .weights = layer.weights,
                          .bias = layer.bias};
  const std::int64_t vectors = vectors_of_features(end - begin);
  with_rows(batch, [&](auto rows) {
    constexpr int vectors_at_once = rows == 1 ? chains : most_vectors;
    outputs_of<rows, vectors_at_once>(product, layer.x, layer.y, begin, begin + vectors * lanes);
  });
  for (std::int64_t row = 0; row < batch.rows; ++row) {
    const std::int64_t at = row * product.y_stride + begin;
    if (layer.sum != nullptr) {
      std::copy_n(layer.y + at, end - begin, layer.sum + at);
    }
    if (layer.activation != Activation::identity) {
      apply(layer.activation, layer.y + at, layer.slope == nullptr ? nullptr : layer.slope + at,
            vectors);
    }
  }
}

/// Of one sample, whose classes lie along the lanes.
double softmax_cross_entropy_of_row(const Loss& of) {
  const Lanes d;
  const hn::RebindToSigned<Lanes> whole;
  const std::int32_t label = of.labels[0];
  const auto is_class = [&](std::int64_t c) {
    return hn::FirstN(d, static_cast<std::size_t>(of.classes - c));
  };
  const auto is_label = [&](std::int64_t c) {
    const auto classes = hn::Iota(whole, static_cast<std::int32_t>(c));
    return hn::RebindMask(d, hn::Eq(classes, hn::Set(whole, label)));
  };
  Vector largest_of_lane = hn::Set(d, of.logits[0]);
  for (std::int64_t c = 0; c < of.classes; c += lanes) {
    const Vector logits = hn::Load(d, of.logits + c);
    largest_of_lane =
        hn::IfThenElse(is_class(c), hn::Max(largest_of_lane, logits), largest_of_lane);
  }
  const Vector largest = hn::MaxOfLanes(d, largest_of_lane);
  Vector others = hn::Zero(d);  // than the label: see operations/loss.cpp
  for (std::int64_t c = 0; c < of.classes; c += lanes) {
    const Vector e =
        hn::IfThenElseZero(is_class(c), hn::Exp(d, hn::Sub(hn::Load(d, of.logits + c), largest)));
    others = hn::Add(others, hn::IfThenZeroElse(is_label(c), e));
    hn::Store(e, d, of.dlogits + c);
  }
  others = hn::SumOfLanes(d, others);
  const Vector of_label = hn::Set(d, of.dlogits[label]);
  const Vector normalized = hn::Div(hn::Set(d, of.factor), hn::Add(others, of_label));
  for (std::int64_t c = 0; c < of.classes; c += lanes) {
    const Vector slope = hn::IfThenElse(is_label(c), hn::Neg(others), hn::Load(d, of.dlogits + c));
    hn::Store(hn::Mul(slope, normalized), d, of.dlogits + c);
  }
  const Vector above_one = hn::Add(others, hn::Sub(of_label, hn::Set(d, 1.0F)));
  const Vector of_one =
      hn::Add(hn::Sub(largest, hn::Set(d, of.logits[label])), hn::Log1p(d, above_one));
  return hn::GetLane(of_one);
}

/// Of the other losses each element counts by itself: outputs of a sample as samples of an output.
double loss_by_rows(const Loss& of, const Batch& /*batch*/, std::int64_t begin, std::int64_t end) {
  const std::int64_t ld = whole_lines(of.classes);
  double sum = 0;
  for (std::int64_t row = begin; row < end; ++row) {
    Loss one = of;
    one.logits += row * ld;
    one.dlogits += row * ld;
    if (of.function == LossFunction::cross_entropy) {
      one.labels += row;
      sum += softmax_cross_entropy_of_row(one);
    } else {
      one.targets += row * of.targets_ld;
      one.classes = 1;
      sum += loss(one, {.rows = of.classes}, 0, of.classes);
    }
  }
  return sum;
}

/// dy w of `features` inputs, a tile of them at most, to which `weights` and `dx` point.
template <int rows, int features>
HWY_INLINE void product_tile(const Layer& layer, const float* weights, float* dx) {
  const Lanes d;
  const std::int64_t dy_ld = whole_lines(layer.out);
  Sums<rows, tile> sums;
  for_each<rows, tile>([&](int r, int f) { sums(r, f) = hn::Zero(d); });
  for (std::int64_t o = 0; o < layer.out; o += lanes) {
    // What lies behind the last output may be no number.
    const auto inside = hn::FirstN(d, static_cast<std::size_t>(layer.out - o));
    Sums<features, 1> w;
    for_each<features, 1>([&](int f, int v) {
      w(f, v) = kept(hn::MaskedLoad(inside, d, weights + f * layer.ld + o));
    });
    for_each<rows, features>([&](int r, int f) {
      sums(r, f) = hn::MulAdd(w(f, 0), hn::Load(d, layer.dy + r * dy_ld + o), sums(r, f));
    });
  }
  for_each<rows, 1>([&](int r, int /*v*/) {
    hn::Store(sums_of_lanes(sums(r, 0), sums(r, 1), sums(r, 2), sums(r, 3)), Four(),
              dx + r * whole_lines(layer.in));
  });
}

void gradient_by_rows(const Layer& layer, const Batch& batch, std::int64_t begin,
                      std::int64_t end) {
  with_rows(batch, [&](auto rows) {
    for_each_part<tile>(begin, end, [&](auto features, std::int64_t i) {
      product_tile<rows, features>(layer, layer.weights + i * layer.ld, layer.dx + i);
    });
  });
  const Lanes d;
  const float* y_or_slope = layer.x_slope == nullptr ? layer.x : layer.x_slope;
  for (std::int64_t row = 0; row < batch.rows; ++row) {
    for (std::int64_t i = begin; i < end; i += lanes) {
      const std::int64_t at = row * whole_lines(layer.in) + i;
      Sums<1, 1> gradients;
      gradients(0, 0) = hn::Load(d, layer.dx + at);
      if (layer.product != nullptr) {
        hn::Store(gradients(0, 0), d, layer.product + at);
      }
      times_derivative(layer.x_activation, gradients,
                       [&](int /*f*/, int /*v*/) { return hn::Load(d, y_or_slope + at); });
      const auto inside = hn::FirstN(d, static_cast<std::size_t>(layer.in - i));
      hn::Store(hn::IfThenElseZero(inside, gradients(0, 0)), d, layer.dx + at);
    }
  }
}

/// The update of the weights from inputs [begin, end) to `vectors` of outputs from `o` on. Their dy
/// stays in the registers.
template <int rows, int vectors>
HWY_INLINE void update_tile(const Layer& layer, const Update& by, std::int64_t begin,
                            std::int64_t end, std::int64_t o) {
  const Lanes d;
  const std::int64_t x_ld = whole_lines(layer.in);
  const std::int64_t dy_ld = whole_lines(layer.out);
  const Parameters all{layer.weights, layer.dw, layer.m, layer.v};
  const Update own = by;  // which no store can change
  Sums<rows, vectors> dy;
  for_each<rows, vectors>(
      [&](int r, int v) { dy(r, v) = hn::Load(d, layer.dy + r * dy_ld + o + v * lanes); });
  for (std::int64_t i = begin; i < end; ++i) {
    const float* x = layer.x + i;
    for_each<1, vectors>([&](int /*f*/, int v) {
      Vector gradients = hn::Mul(hn::Set(d, x[0]), dy(0, v));
#pragma GCC unroll 4
      for (int r = 1; r < rows; ++r) {
        gradients = hn::MulAdd(hn::Set(d, x[r * x_ld]), dy(r, v), gradients);
      }
      update_parameters(d, all.from(i * layer.ld + o + v * lanes), gradients, own, own.of_weights);
    });
  }
}

void update_by_rows(const Layer& layer, const Batch& batch, const Update& by, std::int64_t begin,
                    std::int64_t end) {
  with_rows(batch, [&](auto rows) {
    for_each_part<most_vectors>(0, vectors_of_features(layer.out),
                                [&](auto vectors, std::int64_t v) {
                                  update_tile<rows, vectors>(layer, by, begin, end, v * lanes);
                                });
  });
}

void update_bias_by_rows(const Layer& layer, const Batch& batch, const Update& by,
                         std::int64_t begin, std::int64_t end) {
  const Lanes d;
  const Parameters all{layer.bias, layer.dbias, layer.bias_m, layer.bias_v};
  for (std::int64_t o = begin; o < end; o += lanes) {
    Vector gradients = hn::Load(d, layer.dy + o);
    for (std::int64_t row = 1; row < batch.rows; ++row) {
      gradients = hn::Add(gradients, hn::Load(d, layer.dy + row * whole_lines(layer.out) + o));
    }
    update_parameters(d, all.from(o), gradients, by, by.of_biases);
  }
}

}  // namespace

Kernels kernels_by_rows() {
  return {.gather = gather_by_rows,
          .forward = forward_by_rows,
          .loss = loss_by_rows,
          .gradient = gradient_by_rows,
          .update = update_by_rows,
          .update_bias = update_bias_by_rows,
          .instructions = hwy::TargetName(HWY_TARGET)};
}

}  // namespace crossover::cpu::fused::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace crossover::cpu::fused {

HWY_EXPORT(kernels_by_rows);

Kernels best_kernels_by_rows() { return HWY_DYNAMIC_DISPATCH(kernels_by_rows)(); }

}  // namespace crossover::cpu::fused
#endif
