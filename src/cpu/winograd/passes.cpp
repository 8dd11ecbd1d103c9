// SPDX-License-Identifier: Apache-2.0
#include "passes.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <variant>

#include "../base/layout.h"
#include "../base/threads.h"
#include "../plan/primitives.h"
#include "kernels.h"

namespace crossover::cpu::winograd {
namespace {

// ---- The weights of a convolution as Winograd's F(2x2, 3x3) multiplies with them, G g G^T of each
// kernel g of 3x3, and back: few numbers beside the images.

struct Weights {
  std::int64_t out = 0, in = 0;  ///< channels; multiples of `lanes`
  std::int64_t lanes = 0;        ///< at most 16
};

constexpr std::int64_t size = 3;  ///< of a window
constexpr std::int64_t kernel = size * size;
constexpr std::size_t most_lanes = 16;

/// One number for each lane.
using Numbers = std::array<float, most_lanes>;

template <class Work>
void for_each_lane(std::int64_t lanes, const Work& work) {
  for (std::size_t lane = 0; lane < static_cast<std::size_t>(lanes); ++lane) {
    work(lane);
  }
}

/// By G: from three numbers `stride` apart to four.
void transform(const Weights& of, const Numbers* g, std::size_t stride, Numbers* to) {
  for_each_lane(of.lanes, [&](std::size_t lane) {
    const float first = g[0][lane];
    const float middle = g[stride][lane] / 2;
    const float last = g[2 * stride][lane];
    const float mean = (first + last) / 2;
    to[0][lane] = first;
    to[1][lane] = mean + middle;
    to[2][lane] = mean - middle;
    to[3][lane] = last;
  });
}

/// By G^T: from four numbers `stride` apart to three.
void transform_back(const Weights& of, const Numbers* s, std::size_t stride, Numbers* to) {
  for_each_lane(of.lanes, [&](std::size_t lane) {
    const float mean = (s[stride][lane] + s[2 * stride][lane]) / 2;
    to[0][lane] = s[0][lane] + mean;
    to[1][lane] = (s[stride][lane] - s[2 * stride][lane]) / 2;
    to[2][lane] = mean + s[3 * stride][lane];
  });
}

/// Where the products of mirrored kernels are those of another point: first and last change places.
std::int64_t mirrored(std::int64_t point) {
  constexpr std::array<std::int64_t, input_side> swapped{3, 1, 2, 0};
  return swapped.at(static_cast<std::size_t>(point / input_side)) * input_side +
         swapped.at(static_cast<std::size_t>(point % input_side));
}

/// A vector of kernels, of which the first is at `w` and the next ones `stride` kernels behind
/// each other, at all points.
std::array<Numbers, points> transformed(const Weights& of, const float* w, std::int64_t stride) {
  std::array<Numbers, kernel> g{};
  for_each_lane(of.lanes, [&](std::size_t lane) {
    const float* from = w + static_cast<std::int64_t>(lane) * stride * kernel;
    for (std::size_t i = 0; i < kernel; ++i) {
      g[i][lane] = from[i];
    }
  });
  std::array<Numbers, input_side * size> columns{};
  std::array<Numbers, points> result{};
  for (std::size_t row = 0; row < size; ++row) {
    transform(of, &g[row * size], 1, &columns[row * input_side]);
  }
  for (std::size_t column = 0; column < input_side; ++column) {
    std::array<Numbers, input_side> values{};
    transform(of, &columns[column], input_side, values.data());
    for (std::size_t row = 0; row < input_side; ++row) {
      result[row * input_side + column] = values[row];
    }
  }
  return result;
}

void store(const Weights& of, const Numbers& values, float* to) {
  for_each_lane(of.lanes, [&](std::size_t lane) { to[lane] = values[lane]; });
}

/// For the forward pass, from w [out][in][3][3]: to[points][out / lanes][in][lanes], of inputs
/// [begin, end).
void transform_weights(const Weights& of, const float* w, float* to, std::int64_t begin,
                       std::int64_t end) {
  for (std::int64_t in = begin; in < end; ++in) {
    for (std::int64_t out = 0; out < of.out; out += of.lanes) {
      const auto values = transformed(of, w + (out * of.in + in) * kernel, of.in);
      for (std::int64_t point = 0; point < points; ++point) {
        store(of, values[static_cast<std::size_t>(point)],
              to + (point * of.out + out) * of.in + in * of.lanes);
      }
    }
  }
}

/// For the gradient of the images, which is a convolution of dy by the mirrored kernels:
/// to[points][in / lanes][out][lanes], of outputs [begin, end).
void transform_mirrored_weights(const Weights& of, const float* w, float* to, std::int64_t begin,
                                std::int64_t end) {
  for (std::int64_t out = begin; out < end; ++out) {
    for (std::int64_t in = 0; in < of.in; in += of.lanes) {
      const auto values = transformed(of, w + (out * of.in + in) * kernel, 1);
      for (std::int64_t point = 0; point < points; ++point) {
        store(of, values[static_cast<std::size_t>(mirrored(point))],
              to + (point * of.in + in) * of.out + out * of.lanes);
      }
    }
  }
}

/// The gradient dw [out][in][3][3], G^T s G, of inputs [begin, end); s is the sum of `parts` arrays
/// [points][in / lanes][out / lanes][lanes of in][lanes of out].
void transform_back(const Weights& of, const float* sums, std::int64_t parts, float* dw,
                    std::int64_t begin, std::int64_t end) {
  const std::int64_t of_point = of.in * of.out;
  for (std::int64_t in = begin; in < end; ++in) {
    const std::int64_t block = in / of.lanes;
    for (std::int64_t out = 0; out < of.out; out += of.lanes) {
      const std::int64_t at = (block * of.out + out) * of.lanes + in % of.lanes * of.lanes;
      std::array<Numbers, points> s{};
      for (std::int64_t part = 0; part < parts; ++part) {
        for (std::int64_t point = 0; point < points; ++point) {
          const float* from = sums + (part * points + point) * of_point + at;
          for_each_lane(of.lanes, [&](std::size_t lane) {
            s[static_cast<std::size_t>(point)][lane] += from[lane];
          });
        }
      }
      std::array<Numbers, size * input_side> rows{};
      for (std::size_t column = 0; column < input_side; ++column) {
        std::array<Numbers, size> values{};
        transform_back(of, &s[column], input_side, values.data());
        for (std::size_t row = 0; row < size; ++row) {
          rows[row * input_side + column] = values[row];
        }
      }
      std::array<Numbers, kernel> g{};
      for (std::size_t row = 0; row < size; ++row) {
        transform_back(of, &rows[row * input_side], 1, &g[row * size]);
      }
      for_each_lane(of.lanes, [&](std::size_t lane) {
        float* to = dw + ((out + static_cast<std::int64_t>(lane)) * of.in + in) * kernel;
        for (std::size_t i = 0; i < kernel; ++i) {
          to[i] = g[i][lane];
        }
      });
    }
  }
}

// ---- The passes

/// Of the transformed weights: 256 by 256 channels. With 512 they come from memory for each unit,
/// and oneDNN's convolution is as fast; but for few units of a forward pass, which has them
/// transformed once, on one thread.
constexpr std::int64_t most_weight_bytes = 1 << 22;
constexpr std::int64_t few_units = 4;

/// With it the last window still holds a pixel; the gradient of images pads what it leaves.
constexpr std::int64_t widest_padding = 2;

std::int64_t weight_floats(const Weights& of) { return points * of.in * of.out; }

constexpr std::int64_t bytes_of(std::int64_t floats) {
  return floats * static_cast<std::int64_t>(sizeof(float));
}

Weights weights_of(const Tensor& w) {
  return {.out = w.shape[0], .in = w.shape[1], .lanes = best_kernels().lanes};
}

bool has_blocks(const Tensor& image) {
  return image.type == Type::f32 && ImageRows(image, image.type).channels == best_kernels().lanes;
}

Images images(const Tensor& image) {
  const ImageRows rows(image, image.type);
  return {.blocks = rows.blocks, .height = rows.height, .width = rows.width};
}

Geometry geometry_of(const Tensor& x, const Tensor& y, std::int64_t padding) {
  return {.batch = x.shape[0], .in = images(x), .out = images(y), .padding = padding};
}

bool has_small_weights(const Tensor& w) {
  return bytes_of(weight_floats(weights_of(w))) <= most_weight_bytes;
}

/// Whatever the threads.
bool may_take(const Tensor& x, const Tensor& w, const Tensor& y, const Window& window,
              const Workload& workload) {
  return has_winograd(x, w, window) && window.padding.is_square() &&
         window.padding.down <= widest_padding && has_blocks(x) && has_blocks(y) &&
         (has_small_weights(w) ||
          (is_used(workload) && geometry_of(x, y, window.padding.down).units() <= few_units));
}

bool may_take(const Convolution& op, const Workload& workload) {
  const bool activates = op.activation == Activation::identity || op.activation == Activation::relu;
  return activates && may_take(workload[op.x], workload[op.w], workload[op.y], op.window, workload);
}

bool may_take(const ConvolutionGrad& op, const Workload& workload) {
  return may_take(workload[op.image()], workload[op.w], workload[op.dy], op.window, workload);
}

/// Large weights are read by one thread, or by none.
template <class Op>
bool takes(const Op& op, Id y, const Lowering& to) {
  return to.takes_winograd() && may_take(op, to.workload()) &&
         (has_small_weights(to[op.w]) || convolution_threads(to[op.w], to[y], to) == 1);
}

/// Whether predicate(op) is true of one of the convolutions at least.
template <class Predicate>
bool is_any(const Workload& workload, const Predicate& predicate) {
  for (const Step& step : workload.steps) {
    for (const Op& op : step.ops) {
      const auto* convolution = std::get_if<Convolution>(&op);
      const auto* gradient = std::get_if<ConvolutionGrad>(&op);
      if ((convolution != nullptr && predicate(*convolution)) ||
          (gradient != nullptr && predicate(*gradient))) {
        return true;
      }
    }
  }
  return false;
}

/// Room for so many floats.
Argument room(std::int64_t floats, Lowering& to) { return to.reserve(bytes_of(floats)); }

/// So many parts of `count`: one for each thread, none empty.
std::int64_t parts_of(int threads, std::int64_t count) {
  return std::min<std::int64_t>(threads, count);
}

/// work(part, begin, end) for each of the parts of `count`.
template <class Work>
void for_each_part(int threads, std::int64_t count, const Work& work) {
  const std::int64_t parts = parts_of(threads, count);
  split(
      threads, parts,
      [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t part = first; part < last; ++part) {
          work(part, count * part / parts, count * (part + 1) / parts);
        }
      },
      1);
}

using TransformWeights = void (*)(const Weights&, const float*, float*, std::int64_t, std::int64_t);

/// A convolution of images: the forward pass, and the gradient of the images.
struct ForwardPass {
  Id x = none, w = none, bias = none, y = none;
  Geometry geometry;
  bool relu = false;
  TransformWeights transform = nullptr;
  std::int64_t summed_channels = 0;

  /// What does not train has its weights transformed once.
  void add_to(Lowering& to, int threads) const {
    const Weights weights = weights_of(to[w]);
    const std::int64_t bytes = bytes_of(weight_floats(weights));
    const bool is_trained = trains(to.workload());
    const Argument transformed = is_trained ? to.reserve(bytes) : to.keep(bytes);
    if (!is_trained) {
      to.add_once(OpCategory::convolution, threads, {reads(w), transformed},
                  [pass = *this, weights](const Invocation& call) {
                    pass.transform_all(weights, call.operand<const float>(0),
                                       call.operand<float>(1), call.threads);
                  });
    }
    to.add(OpCategory::convolution, threads,
           {reads(x, image_layout(to[x])), reads(w), bias == none ? Argument{} : reads(bias),
            writes(y, image_layout(to[y])), transformed,
            room(threads * best_kernels().scratch_floats(geometry), to)},
           [pass = *this, weights, is_trained](const Invocation& call) {
             if (is_trained) {
               pass.transform_all(weights, call.operand<const float>(1), call.operand<float>(4),
                                  call.threads);
             }
             pass.run(call);
           });
  }

 private:
  void transform_all(const Weights& weights, const float* from, float* transformed,
                     int threads) const {
    for_each_part(threads, summed_channels,
                  [&](std::int64_t, std::int64_t begin, std::int64_t end) {
                    transform(weights, from, transformed, begin, end);
                  });
  }

  void run(const Invocation& call) const {
    const Kernels& kernels = best_kernels();
    auto* const scratch = call.operand<float>(5);
    const Forward pass{.geometry = geometry,
                       .x = call.operand<const float>(0),
                       .weights = call.operand<const float>(4),
                       .bias = call.operand<const float>(2),
                       .relu = relu,
                       .y = call.operand<float>(3)};
    for_each_part(call.threads, geometry.units(),
                  [&](std::int64_t part, std::int64_t begin, std::int64_t end) {
                    kernels.forward(pass, begin, end,
                                    scratch + part * kernels.scratch_floats(geometry));
                  });
  }
};

/// The gradients of the weights and of the bias, which each thread sums for itself first.
struct GradientPass {
  Id x = none, dy = none, w = none, dw = none, dbias = none;
  Geometry geometry;

  void add_to(Lowering& to, int threads) const {
    const Weights weights = weights_of(to[w]);
    const bool has_bias = dbias != none;
    to.add(OpCategory::convolution, threads,
           {reads(x, image_layout(to[x])), reads(dy, image_layout(to[dy])), writes(dw),
            has_bias ? writes(dbias) : Argument{}, room(threads * weight_floats(weights), to),
            has_bias ? room(threads * weights.out, to) : Argument{},
            room(threads * best_kernels().scratch_floats(geometry), to)},
           [pass = *this, weights](const Invocation& call) { pass.run(weights, call); });
  }

 private:
  void run(const Weights& weights, const Invocation& call) const {
    const Kernels& kernels = best_kernels();
    const Gradient pass{.geometry = geometry,
                        .x = call.operand<const float>(0),
                        .dy = call.operand<const float>(1)};
    auto* const dw_result = call.operand<float>(2);
    auto* const dbias_result = call.operand<float>(3);
    auto* const sums = call.operand<float>(4);
    auto* const bias_sums = call.operand<float>(5);
    auto* const scratch = call.operand<float>(6);
    const std::int64_t parts = parts_of(call.threads, geometry.units());
    for_each_part(
        call.threads, geometry.units(),
        [&](std::int64_t part, std::int64_t begin, std::int64_t end) {
          float* const own = sums + part * weight_floats(weights);
          float* const own_bias = bias_sums == nullptr ? nullptr : bias_sums + part * weights.out;
          std::fill_n(own, weight_floats(weights), 0.0F);
          std::fill_n(own_bias, own_bias == nullptr ? 0 : weights.out, 0.0F);
          kernels.gradient(pass, begin, end, scratch + part * kernels.scratch_floats(geometry), own,
                           own_bias);
        });
    for_each_part(call.threads, weights.in,
                  [&](std::int64_t, std::int64_t begin, std::int64_t end) {
                    transform_back(weights, sums, parts, dw_result, begin, end);
                  });
    for (std::int64_t out = 0; dbias_result != nullptr && out < weights.out; ++out) {
      dbias_result[out] = 0;
      for (std::int64_t part = 0; part < parts; ++part) {
        dbias_result[out] += bias_sums[part * weights.out + out];
      }
    }
  }
};

}  // namespace

bool takes(const Convolution& op, const Lowering& to) { return takes(op, op.y, to); }

bool takes(const ConvolutionGrad& op, const Lowering& to) { return takes(op, op.dy, to); }

bool may_take_any(const Workload& workload) {
  return is_any(workload, [&](const auto& op) { return may_take(op, workload); });
}

void require_any(const Lowering& to) {
  if (is_any(to.workload(), [&](const auto& op) { return takes(op, to); })) {
    return;
  }
  throw Unsupported(
      "Winograd's products are for convolutions in f32 with windows of 3x3, stride 1, one group "
      "and a multiple of " +
      std::to_string(best_kernels().lanes) +
      " channels, up to 256 by 256 but in forward passes of few pixels: this network has none that "
      "this processor takes so");
}

void lower(const Convolution& op, Lowering& to) {
  ForwardPass{.x = op.x,
              .w = op.w,
              .bias = op.bias,
              .y = op.y,
              .geometry = geometry_of(to[op.x], to[op.y], op.window.padding.down),
              .relu = op.activation == Activation::relu,
              .transform = transform_weights,
              .summed_channels = to[op.x].shape[1]}
      .add_to(to, convolution_threads(to[op.w], to[op.y], to));
}

void lower(const ConvolutionGrad& op, Lowering& to) {
  const int threads = convolution_threads(to[op.w], to[op.dy], to);
  if (op.dx != none) {
    ForwardPass{
        .x = op.dy,
        .w = op.w,
        .bias = op.bias,
        .y = op.dx,
        .geometry = geometry_of(to[op.dy], to[op.dx], widest_padding - op.window.padding.down),
        .transform = transform_mirrored_weights,
        .summed_channels = to[op.dy].shape[1]}
        .add_to(to, threads);
  }
  if (op.dw == none) {
    return;
  }
  GradientPass{.x = op.x,
               .dy = op.dy,
               .w = op.w,
               .dw = op.dw,
               .dbias = op.dbias,
               .geometry = geometry_of(to[op.x], to[op.dy], op.window.padding.down)}
      .add_to(to, threads);
}

}  // namespace crossover::cpu::winograd
