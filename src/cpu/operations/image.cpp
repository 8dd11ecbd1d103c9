// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "../base/layout.h"
#include "../base/loops.h"
#include "../base/threads.h"
#include "../base/vector.h"
#include "../plan/primitives.h"
#include "../winograd/passes.h"
#include "operations.h"

namespace crossover::cpu {

// ---- Three passes by oneDNN: forward with bias and activation, backward data, and backward
// weights with the bias's gradient. oneDNN adds no bias to what backward data gives; a loop of ours
// does.

namespace {

/// images += bias [channels].
void add_bias(Id images, Id bias, Lowering& to) {
  const Tensor& tensor = to[images];
  with_float(tensor.type, [&](auto zero) {
    using T = decltype(zero);
    to.add(OpCategory::elementwise, to.threads_for(images),
           {updates(images, image_layout(tensor)), reads(bias)},
           [of = ImageRows(tensor, tensor.type)](const Invocation& call) {
             T* const values = call.operand<T>(0);
             const T* const added = call.operand<const T>(1);
             split(
                 call.threads, of.planes() * of.height,
                 [=](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t row = begin; row < end; ++row) {
                     const T* own = added + row / of.height % of.blocks * of.channels;
                     T* const first = values + row * of.width * of.channels;
                     for_each_vector(of.channels, [&](auto part, std::int64_t c) {
                       const Floats more = load(part, own + c);
                       for (std::int64_t pixel = 0; pixel < of.width; ++pixel) {
                         T* const at = first + pixel * of.channels + c;
                         store(part, load(part, at) + more, at);
                       }
                     });
                   }
                 },
                 1);
           });
  });
}

}  // namespace

void lower(const Convolution& op, Lowering& to) {
  if (winograd::takes(op, to)) {
    winograd::lower(op, to);
    return;
  }
  const auto pass = describe_forward(op, to);
  Primitive work{.arguments = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST}, .description = pass};
  std::vector<Argument> arguments{reads(op.x, Layout(pass.src_desc())),
                                  reads(op.w, Layout(pass.weights_desc())),
                                  writes(op.y, Layout(pass.dst_desc()))};
  if (op.bias != none) {
    work.arguments.push_back(DNNL_ARG_BIAS);
    arguments.push_back(reads(op.bias));
  }
  to.add(OpCategory::convolution, convolution_threads(to[op.w], to[op.y], to), arguments,
         std::move(work));
}

void lower(const ConvolutionGrad& op, Lowering& to) {
  if (winograd::takes(op, to)) {
    winograd::lower(op, to);
    return;
  }
  const int threads = convolution_threads(to[op.w], to[op.dy], to);
  if (op.dx != none) {
    const auto pass = describe_backward_data(op, to);
    to.add(OpCategory::convolution, threads,
           {reads(op.dy, Layout(pass.diff_dst_desc())), reads(op.w, Layout(pass.weights_desc())),
            writes(op.dx, Layout(pass.diff_src_desc()))},
           Primitive{.arguments = {DNNL_ARG_DIFF_DST, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_SRC},
                     .description = pass});
  }
  if (op.bias != none) {
    add_bias(op.dx, op.bias, to);
  }
  if (op.dw == none) {
    return;
  }
  const auto pass = describe_backward_weights(op, to);
  Primitive work{.arguments = {DNNL_ARG_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_WEIGHTS},
                 .description = pass};
  std::vector<Argument> arguments{reads(op.x, Layout(pass.src_desc())),
                                  reads(op.dy, Layout(pass.diff_dst_desc())),
                                  writes(op.dw, Layout(pass.diff_weights_desc()))};
  if (op.dbias != none) {
    work.arguments.push_back(DNNL_ARG_DIFF_BIAS);
    arguments.push_back(writes(op.dbias));
  }
  to.add(OpCategory::convolution, threads, arguments, std::move(work));
}

void lower(const ChannelBiasGrad& op, Lowering& to) {
  const Tensor& dy = to[op.dy];
  with_float(dy.type, [&](auto zero) {
    using T = decltype(zero);
    to.add(
        OpCategory::elementwise, to.threads_for(op.dy),
        {reads(op.dy, image_layout(dy)), writes(op.dbias)},
        [of = ImageRows(dy, dy.type)](const Invocation& call) {
          const T* const from = call.operand<const T>(0);
          auto* const sums = call.operand<float>(1);
          const std::int64_t vectors = (of.channels + lanes - 1) / lanes;
          const auto add_up = [=](auto part, std::int64_t block, std::int64_t c) {
            Floats sum{};
            for (std::int64_t image = 0; image < of.batch; ++image) {
              const T* first = from + (image * of.blocks + block) * of.pixels() * of.channels + c;
              sum += sum_of_rows<1>(of.pixels(), [&](std::int64_t pixel) {
                return std::array{load(part, first + pixel * of.channels)};
              })[0];
            }
            store(part, sum, sums + block * of.channels + c);
          };
          split(
              call.threads, of.blocks * vectors,
              [=](std::int64_t begin, std::int64_t end) {
                for (std::int64_t i = begin; i < end; ++i) {
                  const std::int64_t c = i % vectors * lanes;
                  if (c + lanes <= of.channels) {
                    add_up(WholeVector{}, i / vectors, c);
                  } else {
                    add_up(PartOfVector{static_cast<std::size_t>(of.channels - c)}, i / vectors, c);
                  }
                }
              },
              1);
        });
  });
}

// ---- Pooling in the image layout, all channels of a pixel at once. Gradients ask each pixel of
// the image which windows hold it, so that nobody writes where another thread does.

namespace {

/// Consecutive numbers.
struct Range {
  std::int64_t begin, end;
};

/// A window's positions over one of the image's two dimensions, worked out beforehand: divisions
/// would take longer than what is done with a pixel.
class Positions {
 public:
  Positions(const Slide& slide, std::int64_t extent, std::int64_t count) : slide_(slide) {
    for (std::int64_t position = 0; position < count; ++position) {
      const std::int64_t first = start(position);
      const std::int64_t end = first + slide.size;
      inside_.push_back({std::max<std::int64_t>(first, 0), std::min(end, extent)});
      weight_.push_back(1.0F / static_cast<float>(std::min(end, extent + slide.padding) - first));
    }
    for (std::int64_t at = 0; at < extent; ++at) {
      const std::int64_t last = (at + slide.padding) / slide.stride;
      const std::int64_t before = at + slide.padding - slide.size;  // begins so, ends before `at`
      const std::int64_t first = before < 0 ? 0 : before / slide.stride + 1;
      holding_.push_back({first, std::min(last + 1, count)});
    }
  }

  /// Where the window at a position begins; may be in the padding.
  [[nodiscard]] std::int64_t start(std::int64_t position) const {
    return position * slide_.stride - slide_.padding;
  }

  /// The part of it that is in the image.
  [[nodiscard]] Range inside(std::int64_t position) const {
    return inside_[static_cast<std::size_t>(position)];
  }

  /// One over as much of it as is in the image or in the padding.
  [[nodiscard]] float weight(std::int64_t position) const {
    return weight_[static_cast<std::size_t>(position)];
  }

  /// The positions whose windows hold a row, or a column.
  [[nodiscard]] Range holding(std::int64_t at) const {
    return holding_[static_cast<std::size_t>(at)];
  }

 private:
  Slide slide_;
  std::vector<Range> inside_, holding_;
  std::vector<float> weight_;
};

/// How pixels of the image and of the result go together.
struct Pooling {
  Pooling(const Tensor& large, const Tensor& small, const Window& of, bool is_sum = false)
      : image(large, large.type),
        result(small, large.type),
        rows(of.down(), image.height, result.height),
        columns(of.across(), image.width, result.width),
        places_of_row(of.size.across),
        sums(is_sum) {}

  ImageRows image, result;
  Positions rows, columns;
  std::int64_t places_of_row;  ///< of a window
  bool sums;                   ///< in place of means
};

/// work(first element, row, column) for each pixel of an image: the element's place, and the
/// pixel's.
template <class Work>
void for_each_pixel(int threads, const ImageRows& of, const Work& work) {
  split(
      threads, of.planes() * of.height,
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t line = begin; line < end; ++line) {
          for (std::int64_t column = 0; column < of.width; ++column) {
            work(line / of.height, line % of.height, column);
          }
        }
      },
      1);
}

std::int64_t place(const ImageRows& of, std::int64_t plane, std::int64_t row, std::int64_t column) {
  return ((plane * of.height + row) * of.width + column) * of.channels;
}

/// What a mean takes of each number.
float weight(const Pooling& of, std::int64_t row, std::int64_t column) {
  return of.sums ? 1 : of.rows.weight(row) * of.columns.weight(column);
}

/// Of the largest where `is_max`, else of means or sums, which need no `where_largest`.
template <bool is_max, class T>
void pool(int threads, const Pooling& of, const T* x, T* y, std::uint8_t* where_largest) {
  for_each_pixel(
      threads, of.result, [&](std::int64_t plane, std::int64_t row, std::int64_t column) {
        const Range rows = of.rows.inside(row);
        const Range columns = of.columns.inside(column);
        // The place in the window of the pixel in row 0 and column 0 of the image.
        const std::int64_t places = of.places_of_row;
        const std::int64_t origin = -of.rows.start(row) * places - of.columns.start(column);
        const std::int64_t result = place(of.result, plane, row, column);
        for_each_vector(of.image.channels, [&](auto part, std::int64_t c) {
          const T* from = x + place(of.image, plane, 0, 0) + c;
          const auto pixel = [&](std::int64_t h, std::int64_t w) {
            return load(part, from + (h * of.image.width + w) * of.image.channels);
          };
          Floats found = is_max ? pixel(rows.begin, columns.begin) : Floats{};
          Words at =
              Words{} + static_cast<std::uint32_t>(origin + rows.begin * places + columns.begin);
          for (std::int64_t h = rows.begin; h < rows.end; ++h) {
            for (std::int64_t w = columns.begin; w < columns.end; ++w) {
              const Floats value = pixel(h, w);
              if constexpr (is_max) {
                const auto larger = value > found;
                const Words here = Words{} + static_cast<std::uint32_t>(origin + h * places + w);
                found = larger ? value : found;
                at = larger ? here : at;
              } else {
                found += value;
              }
            }
          }
          if constexpr (is_max) {
            store(part, found, y + result + c);
            store(part, at, where_largest + result + c);
          } else {
            store(part, found * weight(of, row, column), y + result + c);
          }
        });
      });
}

template <bool is_max, class XActivation, class T>
void pool_grad(int threads, const Pooling& of, const T* made, const std::uint8_t* where_largest,
               const T* dy, T* dx) {
  for_each_pixel(threads, of.image, [&](std::int64_t plane, std::int64_t row, std::int64_t column) {
    const Range rows = of.rows.holding(row);
    const Range columns = of.columns.holding(column);
    const std::int64_t pixel = place(of.image, plane, row, column);
    const auto times_factor = [&]([[maybe_unused]] auto part, Floats gradient,
                                  [[maybe_unused]] std::int64_t at) {
      if constexpr (std::is_same_v<XActivation, ActivationOf<Activation::identity>>) {
        return gradient;
      } else {
        return XActivation::gradient(VectorMaths(), gradient, load(part, made + at));
      }
    };
    for_each_vector(of.image.channels, [&](auto part, std::int64_t c) {
      Floats sum{};
      for (std::int64_t h = rows.begin; h < rows.end; ++h) {
        for (std::int64_t w = columns.begin; w < columns.end; ++w) {
          const std::int64_t at = place(of.result, plane, h, w) + c;
          if constexpr (is_max) {
            const auto here = static_cast<std::uint32_t>(
                (row - of.rows.start(h)) * of.places_of_row + column - of.columns.start(w));
            sum += where(load(part, where_largest + at) == here,
                         times_factor(part, load(part, dy + at), at), all(0));
          } else {
            sum += load(part, dy + at) * weight(of, h, w);
          }
        }
      }
      store(part, is_max ? sum : times_factor(part, sum, pixel + c), dx + pixel + c);
    });
  });
}

// ---- All places of a channel at once.

template <class T>
void average(int threads, const LyingPlaces& of, const T* x, T* y) {
  for_each_shared(threads, of, [&](auto part, std::int64_t element, std::int64_t mean) {
    const Floats sum = sum_of_rows<1>(of.of.count, [&](std::int64_t place) {
      return std::array{load(part, x + element + place * of.of.inner)};
    })[0];
    store(part, sum / static_cast<float>(of.of.count), y + mean);
  });
}

template <class T>
void spread(int threads, const LyingPlaces& of, const T* dy, T* dx) {
  for_each_shared(threads, of, [&](auto part, std::int64_t element, std::int64_t mean) {
    const Floats share = load(part, dy + mean) / static_cast<float>(of.of.count);
    for (std::int64_t place = 0; place < of.of.count; ++place) {
      store(part, share, dx + element + place * of.of.inner);
    }
  });
}

}  // namespace

void lower(const Pool& op, Lowering& to) {
  const Tensor& x = to[op.x];
  const int threads = to.threads_for(op.x);
  with_float(x.type, [&](auto zero) {
    using T = decltype(zero);
    if (op.kind == PoolKind::global_average) {
      const LyingPlaces of(x);
      to.add(OpCategory::pooling, threads, {reads(op.x, of.layout), writes(op.y)},
             [of](const Invocation& call) {
               average(call.threads, of, call.operand<const T>(0), call.operand<T>(1));
             });
      return;
    }
    with_bool(op.kind == PoolKind::max, [&](auto is_max) {
      using IsMax = decltype(is_max);
      to.add(
          OpCategory::pooling, threads,
          {reads(op.x, image_layout(x)), writes(op.y, image_layout(to[op.y])),
           is_max ? writes(op.where, image_layout(to[op.where], x.type)) : Argument{}},
          [of = Pooling(x, to[op.y], op.window, op.kind == PoolKind::sum)](const Invocation& call) {
            pool<IsMax::value>(call.threads, of, call.operand<const T>(0), call.operand<T>(1),
                               call.operand<std::uint8_t>(2));
          });
    });
  });
}

void lower(const PoolGrad& op, Lowering& to) {
  const Tensor& dx = to[op.dx];
  const int threads = to.threads_for(op.dx);
  with_float(dx.type, [&](auto zero) {
    using T = decltype(zero);
    if (op.kind == PoolKind::global_average) {
      const LyingPlaces of(dx);
      to.add(OpCategory::pooling, threads, {reads(op.dy), writes(op.dx, of.layout)},
             [of](const Invocation& call) {
               spread(call.threads, of, call.operand<const T>(0), call.operand<T>(1));
             });
      return;
    }
    const bool has_factor = op.x_activation != Activation::identity;
    with_bool(op.kind == PoolKind::max, [&](auto is_max) {
      using IsMax = decltype(is_max);
      with_activation(op.x_activation, [&](auto activation) {
        if constexpr (!decltype(activation)::takes_input) {
          to.add(OpCategory::pooling, threads,
                 {has_factor ? reads(op.made, image_layout(to[op.made])) : Argument{},
                  is_max ? reads(op.where, image_layout(to[op.where], dx.type)) : Argument{},
                  reads(op.dy, image_layout(to[op.dy])), writes(op.dx, image_layout(dx))},
                 [of = Pooling(dx, to[op.dy], op.window, op.kind == PoolKind::sum)](
                     const Invocation& call) {
                   pool_grad<IsMax::value, decltype(activation)>(
                       call.threads, of, call.operand<const T>(0),
                       call.operand<const std::uint8_t>(1), call.operand<const T>(2),
                       call.operand<T>(3));
                 });
        }
      });
    });
  });
}

// ---- Resampling: each pixel is a sum of those that it reads, or is read by, each times its share
// of both axes, which is worked out beforehand.

namespace {

/// Of one axis: what each place of the result is a sum of.
class Shares {
 public:
  Shares(std::int64_t from, std::int64_t to, const Resample& op) {
    const auto axis = ResampledAxis<std::int64_t>::of(from, to, op.aligned);
    for (std::int64_t at = 0; at < (op.transposed ? from : to); ++at) {
      const auto read = op.transposed ? axis.readers_of(at) : axis.read_by(at);
      places_.push_back({read.begin, read.end});
      first_.push_back(static_cast<std::int64_t>(shares_.size()));
      for (std::int64_t i = read.begin; i < read.end; ++i) {
        shares_.push_back(op.transposed ? axis.share<float>(at, i) : axis.share<float>(i, at));
      }
    }
  }

  [[nodiscard]] Range places(std::int64_t at) const {
    return places_[static_cast<std::size_t>(at)];
  }
  /// Of the place at `at`, by the place that it reads.
  [[nodiscard]] const float* shares(std::int64_t at) const {
    const auto place = static_cast<std::size_t>(at);
    return shares_.data() + first_[place] - places_[place].begin;
  }

 private:
  std::vector<Range> places_;
  std::vector<std::int64_t> first_;
  std::vector<float> shares_;
};

struct Resampling {
  ImageRows read, written;
  Shares rows, columns;
};

template <class T>
void resample(int threads, const Resampling& of, const T* x, T* y) {
  for_each_pixel(
      threads, of.written, [&](std::int64_t plane, std::int64_t row, std::int64_t column) {
        const Range rows = of.rows.places(row);
        const Range columns = of.columns.places(column);
        const float* of_rows = of.rows.shares(row);
        const float* of_columns = of.columns.shares(column);
        const std::int64_t pixel = place(of.written, plane, row, column);
        for_each_vector(of.written.channels, [&](auto part, std::int64_t c) {
          Floats sum{};
          for (std::int64_t h = rows.begin; h < rows.end; ++h) {
            for (std::int64_t w = columns.begin; w < columns.end; ++w) {
              sum += load(part, x + place(of.read, plane, h, w) + c) * (of_rows[h] * of_columns[w]);
            }
          }
          store(part, sum, y + pixel + c);
        });
      });
}

}  // namespace

void lower(const Resample& op, Lowering& to) {
  const Tensor& x = to[op.x];
  const Tensor& y = to[op.y];
  const Shape& from = to[op.images()].shape;
  const Shape& result = to[op.result()].shape;
  with_float(x.type, [&](auto zero) {
    using T = decltype(zero);
    to.add(OpCategory::pooling, to.threads_for(op.result()),
           {reads(op.x, image_layout(x)), writes(op.y, image_layout(y))},
           [of = Resampling{{x, x.type},
                            {y, y.type},
                            {from[2], result[2], op},
                            {from[3], result[3], op}}](const Invocation& call) {
             resample(call.threads, of, call.operand<const T>(0), call.operand<T>(1));
           });
  });
}

}  // namespace crossover::cpu
