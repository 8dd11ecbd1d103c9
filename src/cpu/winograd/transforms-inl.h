// SPDX-License-Identifier: Apache-2.0
// The transforms of tiles, of a block of channels and of one row of points at a time, so that what
// is multiplied next stays in the first cache: inputs, results and gradients of results. Compiled
// once for each target (Highway), so the guard opens again for each.
#if defined(CROSSOVER_CPU_WINOGRAD_TRANSFORMS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef CROSSOVER_CPU_WINOGRAD_TRANSFORMS_INL_H
#undef CROSSOVER_CPU_WINOGRAD_TRANSFORMS_INL_H
#else
#define CROSSOVER_CPU_WINOGRAD_TRANSFORMS_INL_H
#endif

// clang-format off
#include <array>
#include <cstdint>
#include <utility>

#include <hwy/highway.h>

#include "../base/vectors-inl.h"
#include "kernels.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace crossover::cpu::winograd::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using cpu::HWY_NAMESPACE::lanes;
using cpu::HWY_NAMESPACE::Lanes;
using cpu::HWY_NAMESPACE::Vector;

/// A pixel, which may lie beside the image.
struct Pixel {
  std::int64_t row = 0, column = 0;
};

/// One block of channels of one image, [height][width][lanes].
template <class Float>
struct Plane {
  Float* first = nullptr;
  std::int64_t height = 0, width = 0;

  [[nodiscard]] HWY_INLINE Float* at(std::int64_t row, std::int64_t column) const {
    return first + (row * width + column) * lanes;
  }
};

/// A run of tiles beside each other in an image, of which `at` is the first one's first pixel.
struct Run {
  std::int64_t tiles = 0;
  Pixel at;
};

/// Where the values of a run's tiles lie at the points of a row: a vector for each tile.
template <class Float>
struct PointRow {
  Float* first = nullptr;
  std::int64_t stride = 0;  ///< floats from a point to the next

  [[nodiscard]] HWY_INLINE Float* at(std::int64_t tile, std::int64_t point) const {
    return first + tile * lanes + point * stride;
  }
};

/// A row of a plane; zeros where there is no image.
class InputRow {
 public:
  HWY_INLINE InputRow(const Plane<const float>& x, std::int64_t row) {
    const bool there = row >= 0 && row < x.height;
    first_ = there ? x.at(row, 0) : nothing.data();
    stride_ = there ? lanes : 0;
  }
  [[nodiscard]] HWY_INLINE Vector operator[](std::int64_t column) const {
    return hn::Load(Lanes(), first_ + column * stride_);
  }

 private:
  alignas(64) static constexpr std::array<float, lanes> nothing{};

  const float* first_;
  std::int64_t stride_;
};

/// Row `row` of B^T d B, where d are the 4x4 pixels of a tile and
/// B^T = [1 0 -1 0; 0 1 1 0; 0 -1 1 0; 0 -1 0 1].
template <int row>
HWY_INLINE void transform_inputs(const Plane<const float>& x, const Run& run,
                                 const PointRow<float>& to) {
  constexpr std::array<int, 4> of_first{0, 1, 2, 3};
  constexpr std::array<int, 4> of_second{2, 2, 1, 1};
  const InputRow first(x, run.at.row + of_first[row]);
  const InputRow second(x, run.at.row + of_second[row]);
  const auto combined = [&](std::int64_t column) {
    if (column < 0 || column >= x.width) {
      return hn::Zero(Lanes());
    }
    return row == 1 ? hn::Add(first[column], second[column])
                    : hn::Sub(first[column], second[column]);
  };
  Vector d0 = combined(run.at.column);
  Vector d1 = combined(run.at.column + 1);
  for (std::int64_t tile = 0; tile < run.tiles; ++tile) {
    const Vector d2 = combined(run.at.column + result_side * tile + 2);
    const Vector d3 = combined(run.at.column + result_side * tile + 3);
    hn::Store(hn::Sub(d0, d2), Lanes(), to.at(tile, 0));
    hn::Store(hn::Add(d1, d2), Lanes(), to.at(tile, 1));
    hn::Store(hn::Sub(d2, d1), Lanes(), to.at(tile, 2));
    hn::Store(hn::Sub(d3, d1), Lanes(), to.at(tile, 3));
    d0 = d2;
    d1 = d3;
  }
}

/// Row `row` of A g A^T, where g are the 2x2 pixels of a tile and A = [1 0; 1 1; 1 -1; 0 1].
template <int row>
HWY_INLINE void transform_gradients(const Plane<const float>& dy, const Run& run,
                                    const PointRow<float>& to) {
  const InputRow first(dy, run.at.row);
  const InputRow second(dy, run.at.row + 1);
  const auto combined = [&](std::int64_t column) {
    if (column >= dy.width) {
      return hn::Zero(Lanes());
    }
    switch (row) {
      case 0:
        return first[column];
      case 1:
        return hn::Add(first[column], second[column]);
      case 2:
        return hn::Sub(first[column], second[column]);
      default:
        return second[column];
    }
  };
  for (std::int64_t tile = 0; tile < run.tiles; ++tile) {
    const Vector g0 = combined(run.at.column + result_side * tile);
    const Vector g1 = combined(run.at.column + result_side * tile + 1);
    hn::Store(g0, Lanes(), to.at(tile, 0));
    hn::Store(hn::Add(g0, g1), Lanes(), to.at(tile, 1));
    hn::Store(hn::Sub(g0, g1), Lanes(), to.at(tile, 2));
    hn::Store(g1, Lanes(), to.at(tile, 3));
  }
}

/// What becomes of the results of a block of channels.
struct Finish {
  Vector bias{};
  Plane<float> y;
  bool relu = false;

  HWY_INLINE void store(std::int64_t row, std::int64_t column, Vector result) const {
    if (row >= y.height || column >= y.width) {
      return;
    }
    result = hn::Add(result, bias);
    if (relu) {  // in this way NaN passes
      result = hn::IfThenElse(hn::Lt(result, hn::Zero(Lanes())), hn::Zero(Lanes()), result);
    }
    hn::Store(result, Lanes(), y.at(row, column));
  }
};

/// In this order the rows of points need the fewest sums in between.
using ResultOrder = std::integer_sequence<int, 1, 2, 0, 3>;

/// What row `row` of m adds to y = A^T m A, where A^T = [1 1 1 0; 0 1 -1 1], the rows in the order
/// above: `sums` has two columns of each of two rows in between.
template <int row>
HWY_INLINE void transform_results(const PointRow<const float>& m, const Run& run,
                                  const PointRow<float>& sums, const Finish& finish) {
  const Lanes d;
  for (std::int64_t tile = 0; tile < run.tiles; ++tile) {
    const Vector m1 = hn::Load(d, m.at(tile, 1));
    const Vector m2 = hn::Load(d, m.at(tile, 2));
    const std::array<Vector, 2> h{hn::Add(hn::Add(hn::Load(d, m.at(tile, 0)), m1), m2),
                                  hn::Add(hn::Sub(m1, m2), hn::Load(d, m.at(tile, 3)))};
#pragma GCC unroll 2
    for (std::int64_t j = 0; j < 2; ++j) {
      float* const upper = sums.at(tile, j);
      float* const lower = sums.at(tile, 2 + j);
      const Vector now = h[static_cast<std::size_t>(j)];
      const std::int64_t column = run.at.column + result_side * tile + j;
      if constexpr (row == 1) {
        hn::Store(now, d, upper);
      } else if constexpr (row == 2) {
        const Vector before = hn::Load(d, upper);
        hn::Store(hn::Add(before, now), d, upper);
        hn::Store(hn::Sub(before, now), d, lower);
      } else if constexpr (row == 0) {
        finish.store(run.at.row, column, hn::Add(hn::Load(d, upper), now));
      } else {
        finish.store(run.at.row + 1, column, hn::Add(hn::Load(d, lower), now));
      }
    }
  }
}

}  // namespace
}  // namespace crossover::cpu::winograd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
