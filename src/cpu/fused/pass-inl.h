// SPDX-License-Identifier: Apache-2.0
// A layer forward for few samples: features lie along the lanes of vectors, samples as they come.
// Compiled once for each target (Highway), so the guard opens again for each.
#if defined(CROSSOVER_CPU_FUSED_PASS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef CROSSOVER_CPU_FUSED_PASS_INL_H
#undef CROSSOVER_CPU_FUSED_PASS_INL_H
#else
#define CROSSOVER_CPU_FUSED_PASS_INL_H
#endif

// clang-format off
#include "forward-inl.h"
#include "kernels.h"
#include "tiles-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace crossover::cpu::fused::HWY_NAMESPACE {
namespace {

/// Sums that run side by side, so that the multipliers need not wait for any of them.
inline constexpr int chains = 8;

/// `vectors` of outputs from `o` on, of `rows` samples. The inputs are cut into as many series as
/// there are sums too few.
template <int rows, int vectors>
HWY_INLINE void outputs_tile(const PassLayer& layer, const float* x, float* y, std::int64_t o) {
  const Lanes d;
  constexpr int series = std::max(1, chains / (rows * vectors));
  std::array<Sums<rows, vectors>, series> sums;
  for_each<rows, vectors>(
      [&](int r, int v) { sums[0](r, v) = hn::Load(d, layer.bias + o + v * lanes); });
  const float* weights = layer.weights + o;
  const auto add = [&](int of, std::int64_t i) HWY_ATTR {
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) {
      const Vector w = loaded(weights + i * layer.ld + v * lanes);
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r) {
        Vector& sum = sums[static_cast<std::size_t>(of)](r, v);
        sum = hn::MulAdd(hn::Set(d, x[r * layer.x_stride + i]), w, sum);
      }
    }
  };
  std::int64_t i = 0;
  for (; i + series <= layer.in; i += series) {
#pragma GCC unroll 8
    for (int of = 0; of < series; ++of) {
      add(of, i + of);
    }
  }
  for (; i < layer.in; ++i) {
    add(0, i);
  }
  for (std::size_t of = 1; of < series; ++of) {
    for_each<rows, vectors>(
        [&](int r, int v) { sums[0](r, v) = hn::Add(sums[0](r, v), sums[of](r, v)); });
  }
  for_each<rows, vectors>(
      [&](int r, int v) { hn::Store(sums[0](r, v), d, y + r * layer.y_stride + o + v * lanes); });
}

/// As many vectors of outputs at once as fill the registers.
template <int rows, int most>
HWY_INLINE void outputs_of(const PassLayer& layer, const float* x, float* y, std::int64_t o,
                           std::int64_t end) {
  for (; end - o >= most * lanes; o += most * lanes) {
    outputs_tile<rows, most>(layer, x, y, o);
  }
  if constexpr (most > 1) {
    if (o < end) {
      outputs_of<rows, most / 2>(layer, x, y, o, end);
    }
  }
}

/// So many floats, fewer than a vector has, wherever they lie; zeros behind.
HWY_INLINE Vector first_of(const float* at, std::int64_t count) {
  const Lanes d;
#if HWY_TARGET <= HWY_AVX2
  return hn::MaskedLoad(hn::FirstN(d, static_cast<std::size_t>(count)), d, at);
#else  // where that reads a whole vector, from where one may begin
  HWY_ALIGN std::array<float, lanes> whole{};
  std::copy_n(at, count, whole.data());
  return hn::Load(d, whole.data());
#endif
}

/// So many outputs from `o` on of one sample, each a product over the inputs. Weights may lie one
/// row behind the other, as they do where nothing was laid out beforehand.
template <int outputs>
HWY_INLINE void inputs_tile(const PassLayer& layer, const float* x, float* y, std::int64_t o) {
  const Lanes d;
  constexpr int series = std::max(1, chains / outputs);
  std::array<Sums<outputs, 1>, series> sums;
  const auto add = [&](int of, Vector inputs, std::int64_t i, const auto& weights_at) HWY_ATTR {
#pragma GCC unroll 8
    for (int f = 0; f < outputs; ++f) {
      Vector& sum = sums[static_cast<std::size_t>(of)](f, 0);
      sum = hn::MulAdd(weights_at(layer.weights + (o + f) * layer.ld + i), inputs, sum);
    }
  };
  const auto whole = [](const float* at) HWY_ATTR { return hn::LoadU(Lanes(), at); };
  for (Sums<outputs, 1>& sum : sums) {
    for_each<outputs, 1>([&](int f, int v) { sum(f, v) = hn::Zero(d); });
  }
  std::int64_t i = 0;
  for (; i + series * lanes <= layer.in; i += series * lanes) {
#pragma GCC unroll 8
    for (int of = 0; of < series; ++of) {
      add(of, hn::LoadU(d, x + i + of * lanes), i + of * lanes, whole);
    }
  }
  for (; i + lanes <= layer.in; i += lanes) {
    add(0, hn::LoadU(d, x + i), i, whole);
  }
  if (i < layer.in) {
    const std::int64_t rest = layer.in - i;
    add(0, first_of(x + i, rest), i,
        [rest](const float* at) HWY_ATTR { return first_of(at, rest); });
  }
  for (std::size_t of = 1; of < series; ++of) {
    for_each<outputs, 1>(
        [&](int f, int v) { sums[0](f, v) = hn::Add(sums[0](f, v), sums[of](f, v)); });
  }
  for (int f = 0; f < outputs; ++f) {
    const float bias = layer.bias == nullptr ? 0 : layer.bias[o + f];
    y[o + f] = bias + hn::GetLane(hn::SumOfLanes(d, sums[0](f, 0)));
  }
}

/// In place.
inline void apply_to(Activation activation, float* y, std::int64_t count) {
  const Lanes d;
  HWY_NAMESPACE::with_activation(activation, [=](auto of) {
    std::int64_t i = 0;
    for (; i + lanes <= count; i += lanes) {
      hn::StoreU(of.value(LaneMaths(), hn::LoadU(d, y + i)), d, y + i);
    }
    if (i < count) {
      const auto last = hn::FirstN(d, static_cast<std::size_t>(count - i));
      hn::BlendedStore(of.value(LaneMaths(), first_of(y + i, count - i)), last, d, y + i);
    }
  });
}

inline void pass(const PassLayer& layer, const float* x, float* y, std::int64_t rows) {
  constexpr int rows_at_once = 4;
  constexpr int vectors_of_rows = lanes == 16 ? 4 : 2;
  const std::int64_t outputs = (layer.out + lanes - 1) / lanes * lanes;
  std::int64_t row = 0;
  if (layer.by_inputs) {
    for (; row < rows; ++row) {
      for_each_part<4>(0, layer.out, [&](auto count, std::int64_t o) {
        inputs_tile<count>(layer, x + row * layer.x_stride, y + row * layer.y_stride, o);
      });
    }
  }
  for (; row + rows_at_once <= rows; row += rows_at_once) {
    outputs_of<rows_at_once, vectors_of_rows>(layer, x + row * layer.x_stride,
                                              y + row * layer.y_stride, 0, outputs);
  }
  for (; row < rows; ++row) {
    outputs_of<1, chains>(layer, x + row * layer.x_stride, y + row * layer.y_stride, 0, outputs);
  }
  if (layer.activation != Activation::identity) {
    for (row = 0; row < rows; ++row) {
      // A whole vector where there is room for it.
      apply_to(layer.activation, y + row * layer.y_stride,
               layer.y_stride < outputs ? layer.out : outputs);
    }
  }
}

}  // namespace
}  // namespace crossover::cpu::fused::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
