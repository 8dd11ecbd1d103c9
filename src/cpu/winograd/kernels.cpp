// SPDX-License-Identifier: Apache-2.0
#include "kernels.h"

#include "../base/targets.h"

// Highway compiles what lies between its markers once for each target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels.cpp"  // NOLINT(cppcoreguidelines-macro-usage): Highway's way
#include <hwy/foreach_target.h>
// clang-format off
#include <algorithm>
#include <utility>

#include <hwy/highway.h>

#include "products-inl.h"
#include "transforms-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace crossover::cpu::winograd::HWY_NAMESPACE {
namespace {

std::int64_t floats_of_point(std::int64_t blocks) {
  return winograd::floats_of_point(blocks, lanes);
}

/// The tiles of a unit.
class Tiles {
 public:
  Tiles(const Geometry& geometry, std::int64_t unit)
      : geometry_(geometry),
        first_(unit * tiles_of_unit),
        count_(std::min(tiles_of_unit, geometry.tiles() - first_)) {}

  [[nodiscard]] std::int64_t count() const { return count_; }

  /// work(first, image, run) for each run of them in an image.
  template <class Work>
  HWY_INLINE void for_each_run(const Work& work) const {
    const std::int64_t across = geometry_.tiles_across();
    const std::int64_t down = geometry_.tiles_down();
    for (std::int64_t tile = 0; tile < count_;) {
      const std::int64_t column = (first_ + tile) % across;
      const std::int64_t row = (first_ + tile) / across;
      const std::int64_t tiles = std::min(count_ - tile, across - column);
      work(tile, row / down,
           Run{.tiles = tiles, .at = {result_side * (row % down), result_side * column}});
      tile += tiles;
    }
  }

 private:
  const Geometry& geometry_;
  const std::int64_t first_, count_;
};

template <class Float>
HWY_INLINE Plane<Float> plane(Float* images, const Images& of, std::int64_t image,
                              std::int64_t block) {
  return {images + (image * of.blocks + block) * of.height * of.width * lanes, of.height, of.width};
}

template <int row>
HWY_INLINE void transform_inputs(const Geometry& geometry, const Tiles& tiles, const float* x,
                                 float* v) {
  tiles.for_each_run([&](std::int64_t first, std::int64_t image, Run run) {
    run.at.row -= geometry.padding;
    run.at.column -= geometry.padding;
    for (std::int64_t block = 0; block < geometry.in.blocks; ++block) {
      transform_inputs<row>(
          plane(x, geometry.in, image, block), run,
          {v + (block * tiles_of_unit + first) * lanes, floats_of_point(geometry.in.blocks)});
    }
  });
}

/// Asks for the rows of images that a unit needs and the units before it did not, for the second
/// cache, while the one before it multiplies.
void prefetch(const Geometry& geometry, std::int64_t unit, const Images& images,
              std::int64_t first_row, const float* from) {
  Tiles(geometry, unit).for_each_run([&](std::int64_t, std::int64_t image, const Run& run) {
    const std::int64_t last_row = std::min(run.at.row + first_row + result_side, images.height);
    const std::int64_t end = std::min(run.at.column + result_side * run.tiles, images.width);
    for (std::int64_t block = 0; block < images.blocks; ++block) {
      const Plane<const float> of_block = plane(from, images, image, block);
      for (std::int64_t row = run.at.row + first_row; row < last_row; ++row) {
        for (std::int64_t column = run.at.column; column < end; ++column) {
          constexpr int to_read = 0;
          constexpr int second_cache = 2;
          __builtin_prefetch(of_block.at(row, column), to_read, second_cache);
        }
      }
    }
  });
}

/// One unit of the forward pass.
struct ForwardUnit {
  const Forward& pass;
  const Tiles& tiles;
  float* scratch;

  template <int... rows>
  void run(std::integer_sequence<int, rows...> /*order*/) const {
    (row<rows>(), ...);
  }

  template <int row_of_points>
  void row() const {
    const Geometry& geometry = pass.geometry;
    const std::int64_t in = geometry.in.blocks;
    const std::int64_t out = geometry.out.blocks;
    const std::int64_t in_floats = floats_of_point(in);
    const std::int64_t out_floats = floats_of_point(out);
    float* const v = scratch;
    float* const m = v + input_side * in_floats;
    float* const sums = m + input_side * out_floats;
    transform_inputs<row_of_points>(geometry, tiles, pass.x, v);
    for (std::int64_t i = 0; i < input_side; ++i) {
      const std::int64_t point = row_of_points * input_side + i;
      multiply(tiles.count(), in, out, v + i * in_floats,
               pass.weights + point * in * out * lanes * lanes, m + i * out_floats);
    }
    tiles.for_each_run([&](std::int64_t first, std::int64_t image, const Run& run) {
      for (std::int64_t block = 0; block < out; ++block) {
        const std::int64_t at = (block * tiles_of_unit + first) * lanes;
        const Vector bias = pass.bias == nullptr ? hn::Zero(Lanes())
                                                 : hn::LoadU(Lanes(), pass.bias + block * lanes);
        transform_results<row_of_points>(
            {m + at, out_floats}, run, {sums + at, out_floats},
            {bias, plane(pass.y, geometry.out, image, block), pass.relu});
      }
    });
  }
};

// clang-tidy 14 does not see what templates write.
// NOLINTBEGIN(readability-non-const-parameter)
void forward(const Forward& pass, std::int64_t begin, std::int64_t end, float* scratch) {
  const Geometry& geometry = pass.geometry;
  for (std::int64_t unit = begin; unit < end; ++unit) {
    if (unit + 1 < end) {
      prefetch(geometry, unit + 1, geometry.in, result_side - geometry.padding, pass.x);
    }
    const Tiles tiles(geometry, unit);
    ForwardUnit{pass, tiles, scratch}.run(ResultOrder());
  }
}

/// One unit of the gradient.
struct GradientUnit {
  const Gradient& pass;
  const Tiles& tiles;
  float* scratch;
  float* sums;
  float* bias_sums;

  template <int row_of_points>
  void row() const {
    const Geometry& geometry = pass.geometry;
    const std::int64_t in = geometry.in.blocks;
    const std::int64_t out = geometry.out.blocks;
    const std::int64_t in_floats = floats_of_point(in);
    const std::int64_t out_floats = floats_of_point(out);
    float* const v = scratch;
    float* const z = v + input_side * in_floats;
    transform_inputs<row_of_points>(geometry, tiles, pass.x, v);
    tiles.for_each_run([&](std::int64_t first, std::int64_t image, const Run& run) {
      for (std::int64_t block = 0; block < out; ++block) {
        transform_gradients<row_of_points>(
            plane(pass.dy, geometry.out, image, block), run,
            {z + (block * tiles_of_unit + first) * lanes, out_floats});
      }
    });
    for (std::int64_t i = 0; i < input_side; ++i) {
      const std::int64_t point = row_of_points * input_side + i;
      add_gradient(tiles.count(), in, out, v + i * in_floats, z + i * out_floats,
                   sums + point * in * out * lanes * lanes);
    }
    if (row_of_points == 1 && bias_sums != nullptr) {
      add_bias(z + out_floats);
    }
  }

  /// In the middle of both rows and columns lies the sum of a tile's gradients.
  void add_bias(const float* z) const {
    for (std::int64_t block = 0; block < pass.geometry.out.blocks; ++block) {
      Vector sum = hn::LoadU(Lanes(), bias_sums + block * lanes);
      for (std::int64_t tile = 0; tile < tiles.count(); ++tile) {
        sum = hn::Add(sum, hn::Load(Lanes(), z + (block * tiles_of_unit + tile) * lanes));
      }
      hn::StoreU(sum, Lanes(), bias_sums + block * lanes);
    }
  }
};

void gradient(const Gradient& pass, std::int64_t begin, std::int64_t end, float* scratch,
              float* sums, float* bias_sums) {
  const Geometry& geometry = pass.geometry;
  for (std::int64_t unit = begin; unit < end; ++unit) {
    if (unit + 1 < end) {
      prefetch(geometry, unit + 1, geometry.in, result_side - geometry.padding, pass.x);
      prefetch(geometry, unit + 1, geometry.out, 0, pass.dy);
    }
    const Tiles tiles(geometry, unit);
    const GradientUnit now{pass, tiles, scratch, sums, bias_sums};
    now.row<0>();
    now.row<1>();
    now.row<2>();
    now.row<3>();
  }
}
// NOLINTEND(readability-non-const-parameter)

}  // namespace

const Kernels& kernels() {
  static constexpr Kernels all{.lanes = lanes, .forward = forward, .gradient = gradient};
  return all;
}

}  // namespace crossover::cpu::winograd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace crossover::cpu::winograd {

HWY_EXPORT(kernels);

const Kernels& best_kernels() { return HWY_DYNAMIC_DISPATCH(kernels)(); }

}  // namespace crossover::cpu::winograd
#endif
