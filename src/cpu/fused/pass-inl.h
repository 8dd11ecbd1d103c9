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

/// So many outputs from `o` on of one sample, each a product over the inputs.
template <int outputs>
HWY_INLINE void inputs_tile(const PassLayer& layer, const float* x, float* y, std::int64_t o) {
  const Lanes d;
  constexpr int series = std::max(1, chains / outputs);
  std::array<Sums<outputs, 1>, series> sums;
  const auto add = [&](int of, Vector inputs, std::int64_t i) HWY_ATTR {
#pragma GCC unroll 8
    for (int f = 0; f < outputs; ++f) {
      Vector& sum = sums[static_cast<std::size_t>(of)](f, 0);
      sum = hn::MulAdd(hn::Load(d, layer.weights + (o + f) * layer.ld + i), inputs, sum);
    }
  };
  for (Sums<outputs, 1>& sum : sums) {
    for_each<outputs, 1>([&](int f, int v) { sum(f, v) = hn::Zero(d); });
  }
  std::int64_t i = 0;
  for (; i + series * lanes <= layer.in; i += series * lanes) {
#pragma GCC unroll 8
    for (int of = 0; of < series; ++of) {
      add(of, hn::LoadU(d, x + i + of * lanes), i + of * lanes);
    }
  }
  for (; i + lanes <= layer.in; i += lanes) {
    add(0, hn::LoadU(d, x + i), i);
  }
  if (i < layer.in) {
    const auto last = hn::FirstN(d, static_cast<std::size_t>(layer.in - i));
    add(0, hn::MaskedLoad(last, d, x + i), i);
  }
  for (std::size_t of = 1; of < series; ++of) {
    for_each<outputs, 1>(
        [&](int f, int v) { sums[0](f, v) = hn::Add(sums[0](f, v), sums[of](f, v)); });
  }
  for (int f = 0; f < outputs; ++f) {
    y[o + f] = layer.bias[o + f] + hn::GetLane(hn::SumOfLanes(d, sums[0](f, 0)));
  }
}

/// In place.
inline void apply_to(Activation activation, float* y, std::int64_t vectors) {
  const Lanes d;
  HWY_NAMESPACE::with_activation(activation, [=](auto of) {
    for (std::int64_t v = 0; v < vectors; ++v) {
      hn::Store(of.value(LaneMaths(), hn::Load(d, y + v * lanes)), d, y + v * lanes);
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
      apply_to(layer.activation, y + row * layer.y_stride, outputs / lanes);
    }
  }
}

}  // namespace
}  // namespace crossover::cpu::fused::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
