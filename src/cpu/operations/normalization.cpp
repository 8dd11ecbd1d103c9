// SPDX-License-Identifier: Apache-2.0
#include <omp.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "../layout.h"
#include "../row_sums.h"
#include "../threads.h"
#include "../vector.h"
#include "operations.h"

namespace crossover::cpu {

// ---- Layer normalization, by as many rows as a vector has lanes: they stay in a cache between
// their sums and what these give, and what is computed of sums is computed of all at once. The
// gradients of weight and bias are summed by strips of rows, then in double.

namespace {

/// Rows whose sums for weight and bias are kept in registers, in float32.
constexpr std::int64_t rows_of_strip = 32;

struct RowSizes {
  explicit RowSizes(const Shape& shape) : rows(leading(shape)), width(shape.back()) {}

  std::int64_t rows, width;
};

// ---- forward

template <class T>
struct NormForward {
  const T* x;
  const float *weight, *bias;  ///< null: 1, and 0; mean: null where rows keep their mean
  T* y;
  float *mean, *inverse_deviation;
  float epsilon;
};

template <class T, class RowOf>
void normalize_rows(const NormForward<T>& op, const RowOf& row_of, std::int64_t width) {
  const auto of_row = static_cast<float>(width);
  Floats mean{};
  if (op.mean != nullptr) {
    const auto terms_of = [&](std::int64_t r) {
      return [x = op.x + row_of(r) * width](auto part, std::int64_t i) {
        return std::array{load(part, x + i)};
      };
    };
    mean = sums_of_rows<1>(width, terms_of)[0] / of_row;
  }
  const auto squares_of = [&](std::int64_t r) {
    return [x = op.x + row_of(r) * width, mean = mean[r]](auto part, std::int64_t i) {
      const Floats apart = load(part, x + i) - mean;
      return std::array{apart * apart};
    };
  };
  const Floats variance = sums_of_rows<1>(width, squares_of)[0] / of_row;
  for (std::int64_t r = 0; r < lanes; ++r) {
    const std::int64_t row = row_of(r);
    const float inverse = 1 / std::sqrt(variance[r] + op.epsilon);
    if (op.mean != nullptr) {
      op.mean[row] = mean[r];
    }
    op.inverse_deviation[row] = inverse;
    const auto normalize = [x = op.x + row * width, y = op.y + row * width, mean = mean[r], inverse,
                            weight = op.weight, bias = op.bias](auto part, std::int64_t i) {
      const Floats normal = (load(part, x + i) - mean) * inverse;
      store(part,
            normal * (weight ? load(part, weight + i) : all(1)) +
                (bias ? load(part, bias + i) : Floats{}),
            y + i);
    };
    for_each_vector(width, normalize);
  }
}

// ---- backward

template <class T>
struct NormBackward {
  const T* x;
  const float *weight, *mean, *inverse_deviation;
  const T* dy;
  T* dx;                   ///< or null
  float *dweight, *dbias;  ///< or null

  /// Mean is null where rows keep theirs, weight where it is 1.
  [[nodiscard]] float mean_of(std::int64_t row) const { return mean == nullptr ? 0 : mean[row]; }
};

/// One row, of which the sums are not known yet.
template <class T>
struct RowOfBackward {
  RowOfBackward(const NormBackward<T>& op, std::int64_t row, std::int64_t width)
      : x(op.x + row * width),
        dy(op.dy + row * width),
        weight(op.weight),
        mean(op.mean_of(row)),
        inverse(op.inverse_deviation[row]) {}

  template <class Part>
  [[nodiscard]] Floats normal(Part part, std::int64_t i) const {
    return (load(part, x + i) - mean) * inverse;
  }
  template <class Part>
  [[nodiscard]] Floats dz(Part part, std::int64_t i) const {
    return load(part, dy + i) * (weight ? load(part, weight + i) : all(1));
  }

  const T *x, *dy;
  const float* weight;
  float mean, inverse;
};

template <class T, class RowOf>
void differentiate_rows(const NormBackward<T>& op, const RowOf& row_of, std::int64_t width) {
  const auto terms_of = [&](std::int64_t r) {
    return [row = RowOfBackward(op, row_of(r), width)](auto part, std::int64_t i) {
      const Floats term = row.dz(part, i);
      return std::array{term, term * row.normal(part, i)};
    };
  };
  auto [sum, products] = sums_of_rows<2>(width, terms_of);
  sum = op.mean == nullptr ? Floats{} : sum / static_cast<float>(width);
  products /= static_cast<float>(width);
  for (std::int64_t r = 0; r < lanes; ++r) {
    const auto differentiate = [row = RowOfBackward(op, row_of(r), width), sum = sum[r],
                                products = products[r],
                                dx = op.dx + row_of(r) * width](auto part, std::int64_t i) {
      const Floats of_sums = sum + row.normal(part, i) * products;
      store(part, row.inverse * (row.dz(part, i) - of_sums), dx + i);
    };
    for_each_vector(width, differentiate);
  }
}

/// `sums` [2, width]: of the products with what is normalized, and of dy.
template <class T>
void add_strip(const NormBackward<T>& op, std::int64_t begin, std::int64_t rows, std::int64_t width,
               double* sums) {
  for_each_vector(width, [&](auto part, std::int64_t i) {
    const auto [products, plain] = sum_of_rows<2>(rows, [&](std::int64_t r) {
      const std::int64_t row = begin + r;
      const std::int64_t at = row * width + i;
      const Floats dy = load(part, op.dy + at);
      const Floats normal = (load(part, op.x + at) - op.mean_of(row)) * op.inverse_deviation[row];
      return std::array{dy * normal, dy};
    });
    for (std::size_t k = 0; k < part.size(); ++k) {
      sums[i + static_cast<std::int64_t>(k)] += static_cast<double>(products[k]);
      sums[width + i + static_cast<std::int64_t>(k)] += static_cast<double>(plain[k]);
    }
  });
}

/// `sums` [threads, 2, width] is scratch memory.
template <class T>
void layer_norm_grad(int threads, const RowSizes& of, const NormBackward<T>& op, double* sums) {
  const std::int64_t sums_of_thread = 2 * of.width;
  std::fill_n(sums, threads * sums_of_thread, 0.0);
  split(
      threads, (of.rows + rows_of_strip - 1) / rows_of_strip,
      [&](std::int64_t first, std::int64_t last) {
        double* own = sums + (threads > 1 ? omp_get_thread_num() : 0) * sums_of_thread;
        for (std::int64_t part = first; part < last; ++part) {
          const std::int64_t begin = part * rows_of_strip;
          const std::int64_t end = std::min(of.rows, begin + rows_of_strip);
          if (op.dweight != nullptr) {
            add_strip(op, begin, end - begin, of.width, own);
          }
          if (op.dx != nullptr) {
            for_each_rows(begin, end,
                          [&](auto row_of) { differentiate_rows(op, row_of, of.width); });
          }
        }
      },
      1);
  for (std::int64_t i = 0; i < of.width; ++i) {
    double products = 0;
    double plain = 0;
    for (int thread = 0; thread < threads; ++thread) {
      products += sums[thread * sums_of_thread + i];
      plain += sums[thread * sums_of_thread + of.width + i];
    }
    if (op.dweight != nullptr) {
      op.dweight[i] = static_cast<float>(products);
    }
    if (op.dbias != nullptr) {
      op.dbias[i] = static_cast<float>(plain);
    }
  }
}

}  // namespace

void lower(const LayerNorm& op, Lowering& to) {
  with_float(to[op.x].type, [&](auto zero) {
    using T = decltype(zero);
    to.add(OpCategory::normalization, to.threads_for(op.x),
           {reads(op.x), reads(op.weight), reads(op.bias), writes(op.y), writes(op.mean),
            writes(op.inverse_deviation)},
           [of = RowSizes(to[op.x].shape),
            epsilon = static_cast<float>(op.epsilon)](const Invocation& call) {
             const NormForward<T> forward{.x = call.operand<const T>(0),
                                          .weight = call.operand<const float>(1),
                                          .bias = call.operand<const float>(2),
                                          .y = call.operand<T>(3),
                                          .mean = call.operand<float>(4),
                                          .inverse_deviation = call.operand<float>(5),
                                          .epsilon = epsilon};
             split(
                 call.threads, of.rows,
                 [&](std::int64_t begin, std::int64_t end) {
                   for_each_rows(begin, end,
                                 [&](auto row_of) { normalize_rows(forward, row_of, of.width); });
                 },
                 1);
           });
  });
}

void lower(const LayerNormGrad& op, Lowering& to) {
  const RowSizes of(to[op.x].shape);
  const int threads = to.threads_for(op.x);
  with_float(to[op.x].type, [&](auto zero) {
    using T = decltype(zero);
    to.add(
        OpCategory::normalization, threads,
        {reads(op.x), reads(op.weight), reads(op.mean), reads(op.inverse_deviation), reads(op.dy),
         op.dx == none ? Argument{} : writes(op.dx), writes(op.dweight), writes(op.dbias),
         to.reserve(of.width * 2 * threads * static_cast<std::int64_t>(sizeof(double)))},
        [of](const Invocation& call) {
          layer_norm_grad<T>(call.threads, of,
                             {.x = call.operand<const T>(0),
                              .weight = call.operand<const float>(1),
                              .mean = call.operand<const float>(2),
                              .inverse_deviation = call.operand<const float>(3),
                              .dy = call.operand<const T>(4),
                              .dx = call.operand<T>(5),
                              .dweight = call.operand<float>(6),
                              .dbias = call.operand<float>(7)},
                             call.operand<double>(8));
        });
  });
}

// ---- Group normalization: a group of channels of an image stays in the cache between its sums and
// what they give. Groups need not be as wide as the blocks in which channels lie.

namespace {

/// Pixels that are summed in float32, before the sums are added in double.
constexpr std::int64_t pixels_of_strip = 64;

/// The groups of images as they lie.
struct Grouped {
  Grouped(const Tensor& x, std::int64_t count)
      : image(x, x.type), groups(count), of_group(x.shape[1] / count) {}

  [[nodiscard]] std::int64_t channels() const { return groups * of_group; }
  [[nodiscard]] double size() const { return static_cast<double>(of_group * image.pixels()); }

  /// work(part, channel, element) for neighbouring channels of group i of all images: the first of
  /// them, and where it lies in the first pixel.
  template <class Work>
  void for_channels(std::int64_t i, const Work& work) const {
    const std::int64_t end = (i % groups + 1) * of_group;
    for (std::int64_t channel = end - of_group; channel < end;) {
      const std::int64_t block = channel / image.channels;
      const std::int64_t within = channel % image.channels;
      const std::int64_t count = std::min({end - channel, image.channels - within, width});
      const std::int64_t plane = i / groups * image.blocks + block;
      const std::int64_t element = plane * image.pixels() * image.channels + within;
      if (count == width) {
        work(WholeVector{}, channel, element);
      } else {
        work(PartOfVector{static_cast<std::size_t>(count)}, channel, element);
      }
      channel += count;
    }
  }

  /// add(s, lane, the sum of terms(pixel)[s] over some pixels), until all are counted.
  template <std::size_t sums, class Part, class Terms, class Add>
  void sum_pixels(Part part, const Terms& terms, const Add& add) const {
    for (std::int64_t first = 0; first < image.pixels(); first += pixels_of_strip) {
      const std::int64_t rows = std::min(pixels_of_strip, image.pixels() - first);
      const auto found = sum_of_rows<sums>(rows, [&](std::int64_t r) { return terms(first + r); });
      for (std::size_t s = 0; s < sums; ++s) {
        for (std::size_t lane = 0; lane < part.size(); ++lane) {
          add(s, static_cast<std::int64_t>(lane), static_cast<double>(found[s][lane]));
        }
      }
    }
  }

  static constexpr std::int64_t width = lanes;
  ImageRows image;
  std::int64_t groups, of_group;
};

template <class T>
struct GroupForward {
  const T* x;
  const float *scale, *shift;
  T* y;
  float *mean, *inverse_deviation;
  double epsilon;
};

template <class T>
void normalize_group(const Grouped& of, const GroupForward<T>& op, std::int64_t i) {
  const std::int64_t apart = of.image.channels;
  double sum = 0;
  of.for_channels(i, [&](auto part, std::int64_t /*channel*/, std::int64_t element) {
    of.sum_pixels<1>(
        part,
        [&](std::int64_t pixel) { return std::array{load(part, op.x + element + pixel * apart)}; },
        [&](std::size_t, std::int64_t, double more) { sum += more; });
  });
  const double middle = sum / of.size();
  const auto mean = static_cast<float>(middle);
  double squares = 0;
  of.for_channels(i, [&](auto part, std::int64_t /*channel*/, std::int64_t element) {
    of.sum_pixels<1>(
        part,
        [&](std::int64_t pixel) {
          const Floats difference = load(part, op.x + element + pixel * apart) - mean;
          return std::array{difference * difference};
        },
        [&](std::size_t, std::int64_t, double more) { squares += more; });
  });
  const auto inverse = static_cast<float>(1 / std::sqrt(squares / of.size() + op.epsilon));
  op.mean[i] = mean;
  op.inverse_deviation[i] = inverse;
  of.for_channels(i, [&](auto part, std::int64_t channel, std::int64_t element) {
    const Floats factor = load(part, op.scale + channel) * inverse;
    const Floats offset = load(part, op.shift + channel);
    for (std::int64_t pixel = 0; pixel < of.image.pixels(); ++pixel) {
      const std::int64_t at = element + pixel * apart;
      store(part, (load(part, op.x + at) - mean) * factor + offset, op.y + at);
    }
  });
}

template <class T>
struct GroupBackward {
  const T* x;
  const float *scale, *mean, *inverse_deviation;
  const T* dy;
  T* dx;
  double* sums;  ///< [batch, channels, 2]: of dy, and of dy x'
};

template <class T>
void differentiate_group(const Grouped& of, const GroupBackward<T>& op, std::int64_t i) {
  const std::int64_t apart = of.image.channels;
  const float mean = op.mean[i];
  const float inverse = op.inverse_deviation[i];
  double* const of_image = op.sums + i / of.groups * of.channels() * 2;
  std::array<double, 2> of_group{};
  of.for_channels(i, [&](auto part, std::int64_t channel, std::int64_t element) {
    double* const own = of_image + channel * 2;
    std::fill_n(own, part.size() * 2, 0.0);
    of.sum_pixels<2>(
        part,
        [&](std::int64_t pixel) {
          const std::int64_t at = element + pixel * apart;
          const Floats dy = load(part, op.dy + at);
          return std::array{dy, dy * ((load(part, op.x + at) - mean) * inverse)};
        },
        [&](std::size_t s, std::int64_t lane, double more) {
          own[lane * 2 + static_cast<std::int64_t>(s)] += more;
          of_group[s] += static_cast<double>(op.scale[channel + lane]) * more;
        });
  });
  const auto shift = static_cast<float>(of_group[0] / of.size());
  const auto slope = static_cast<float>(of_group[1] / of.size());
  of.for_channels(i, [&](auto part, std::int64_t channel, std::int64_t element) {
    const Floats factor = load(part, op.scale + channel);
    for (std::int64_t pixel = 0; pixel < of.image.pixels(); ++pixel) {
      const std::int64_t at = element + pixel * apart;
      const Floats normal = (load(part, op.x + at) - mean) * inverse;
      store(part, inverse * (load(part, op.dy + at) * factor - shift - normal * slope), op.dx + at);
    }
  });
}

template <class Work>
void for_each_group(int threads, const Grouped& of, const Work& work) {
  split(
      threads, of.image.batch * of.groups,
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          work(i);
        }
      },
      1);
}

}  // namespace

void lower(const GroupNorm& op, Lowering& to) {
  const Tensor& x = to[op.x];
  const Layout layout = image_layout(x);
  with_float(x.type, [&](auto zero) {
    using T = decltype(zero);
    to.add(OpCategory::normalization, to.threads_for(op.x),
           {reads(op.x, layout), reads(op.scale), reads(op.shift), writes(op.y, layout),
            writes(op.mean), writes(op.inverse_deviation)},
           [of = Grouped(x, op.groups), epsilon = op.epsilon](const Invocation& call) {
             const GroupForward<T> forward{.x = call.operand<const T>(0),
                                           .scale = call.operand<const float>(1),
                                           .shift = call.operand<const float>(2),
                                           .y = call.operand<T>(3),
                                           .mean = call.operand<float>(4),
                                           .inverse_deviation = call.operand<float>(5),
                                           .epsilon = epsilon};
             for_each_group(call.threads, of,
                            [&](std::int64_t i) { normalize_group(of, forward, i); });
           });
  });
}

void lower(const GroupNormGrad& op, Lowering& to) {
  const Tensor& x = to[op.x];
  const Layout layout = image_layout(x);
  const Argument sums =
      to.reserve(x.shape[0] * x.shape[1] * 2 * static_cast<std::int64_t>(sizeof(double)));
  with_float(x.type, [&](auto zero) {
    using T = decltype(zero);
    to.add(
        OpCategory::normalization, to.threads_for(op.x),
        {reads(op.x, layout), reads(op.scale), reads(op.mean), reads(op.inverse_deviation),
         reads(op.dy, layout), writes(op.dx, layout), writes(op.dscale), writes(op.dshift), sums},
        [of = Grouped(x, op.groups)](const Invocation& call) {
          const GroupBackward<T> backward{.x = call.operand<const T>(0),
                                          .scale = call.operand<const float>(1),
                                          .mean = call.operand<const float>(2),
                                          .inverse_deviation = call.operand<const float>(3),
                                          .dy = call.operand<const T>(4),
                                          .dx = call.operand<T>(5),
                                          .sums = call.operand<double>(8)};
          for_each_group(call.threads, of,
                         [&](std::int64_t i) { differentiate_group(of, backward, i); });
          for (std::int64_t channel = 0; channel < of.channels(); ++channel) {
            std::array<double, 2> total{};
            for (std::int64_t image = 0; image < of.image.batch; ++image) {
              const double* own = backward.sums + (image * of.channels() + channel) * 2;
              total[0] += own[0];
              total[1] += own[1];
            }
            call.operand<float>(6)[channel] = static_cast<float>(total[1]);
            call.operand<float>(7)[channel] = static_cast<float>(total[0]);
          }
        });
  });
}

}  // namespace crossover::cpu
