// SPDX-License-Identifier: Apache-2.0
// Batch normalization in two passes over memory, forward and backward: sums of each channel, then
// everything else. A group of channel blocks goes through both before the next one, so that the
// second pass finds in the cache what the first one read.
#include <omp.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>

#include "../layout.h"
#include "../vector.h"
#include "operations.h"

namespace crossover::cpu {
namespace {

/// Pixels whose sums are kept in registers, in float32, before they are added in double.
constexpr std::int64_t strip = 64;

/// Two sums of each channel, of each thread.
class Sums {
 public:
  Sums(double* memory, std::int64_t channels) : memory_(memory), channels_(channels) {}

  static std::int64_t bytes(std::int64_t threads, std::int64_t channels) {
    return 2 * threads * channels * static_cast<std::int64_t>(sizeof(double));
  }

  [[nodiscard]] double* first(std::int64_t thread) const {
    return memory_ + 2 * thread * channels_;
  }
  [[nodiscard]] double* second(std::int64_t thread) const { return first(thread) + channels_; }

 private:
  double* memory_;
  std::int64_t channels_;
};

/// How an image is divided among threads: each has some strips of all pixels of the batch, the same
/// for each block of channels.
class Division {
 public:
  Division(const ImageRows& image, int threads, std::int64_t bytes_of_element)
      : image_(image), strips_((image.pixels() + strip - 1) / strip) {
    constexpr std::int64_t cached_bytes = 524288;
    const std::int64_t of_block =
        image.batch * image.pixels() * image.channels * bytes_of_element / threads + 1;
    group_ = std::clamp<std::int64_t>(cached_bytes / of_block, 1, image.blocks);
  }

  [[nodiscard]] const ImageRows& image() const { return image_; }
  [[nodiscard]] std::int64_t channels() const { return image_.blocks * image_.channels; }
  [[nodiscard]] double pixels() const {
    return static_cast<double>(image_.batch * image_.pixels());
  }

  /// In a parallel region: sum(first element, first channel, rows) for each strip of a group, then,
  /// by one of the threads, finish(channel) for each channel of it, then apply(...) like sum(...).
  template <class Sum, class Finish, class Apply>
  void run(const Sum& sum, const Finish& finish, const Apply& apply) const {
    const std::int64_t thread = omp_get_thread_num();
    const std::int64_t threads = omp_get_num_threads();
    for (std::int64_t begin = 0; begin < image_.blocks; begin += group_) {
      const std::int64_t end = std::min(image_.blocks, begin + group_);
      for_my_strips(thread, threads, begin, end, sum);
#pragma omp barrier
      const std::int64_t first = begin * image_.channels;
      const std::int64_t count = (end - begin) * image_.channels;
      for (std::int64_t c = count * thread / threads; c < count * (thread + 1) / threads; ++c) {
        finish(first + c);
      }
#pragma omp barrier
      for_my_strips(thread, threads, begin, end, apply);
    }
  }

 private:
  template <class Work>
  void for_my_strips(std::int64_t thread, std::int64_t threads, std::int64_t begin,
                     std::int64_t end, const Work& work) const {
    const std::int64_t all = image_.batch * strips_;
    for (std::int64_t block = begin; block < end; ++block) {
      for (std::int64_t s = all * thread / threads; s < all * (thread + 1) / threads; ++s) {
        const std::int64_t plane = s / strips_ * image_.blocks + block;
        const std::int64_t row = s % strips_ * strip;
        work((plane * image_.pixels() + row) * image_.channels, block * image_.channels,
             std::min(strip, image_.pixels() - row));
      }
    }
  }

  ImageRows image_;
  std::int64_t strips_;
  std::int64_t group_ = 1;
};

template <class Part>
void add_in_double(Part part, Floats values, double* to) {
  for (std::size_t i = 0; i < part.size(); ++i) {
    to[i] += static_cast<double>(values[i]);
  }
}

double sum_over_threads(const Sums& sums, bool second, int threads, std::int64_t channel) {
  double sum = 0;
  for (int thread = 0; thread < threads; ++thread) {
    sum += (second ? sums.second(thread) : sums.first(thread))[channel];
  }
  return sum;
}

// ---- forward

template <class T>
struct Forward {
  const T* x;
  const float *scale, *shift;
  const T* addend;
  T* y;
  float *mean, *inverse_deviation;
  double epsilon;
};

/// Sums of a strip and of its squares. The squares are taken around the strip's own mean, so that a
/// mean far from zero costs no digits.
template <class T>
void add_strip(const Division& of, const T* x, std::int64_t rows, double* sum, double* squares) {
  const std::int64_t channels = of.image().channels;
  for_each_vector(channels, [&](auto part, std::int64_t c) {
    const auto row = [=](std::int64_t r) { return load(part, x + r * channels + c); };
    const auto count = static_cast<float>(rows);
    const Floats center =
        sum_of_rows<1>(rows, [&](std::int64_t r) { return std::array{row(r)}; })[0] / count;
    const auto [rest, around] = sum_of_rows<2>(rows, [&](std::int64_t r) {
      const Floats difference = row(r) - center;
      return std::array{difference, difference * difference};
    });
    for (std::size_t i = 0; i < part.size(); ++i) {
      const double n = count;
      const double m = center[i];
      sum[c + static_cast<std::int64_t>(i)] += n * m + rest[i];
      squares[c + static_cast<std::int64_t>(i)] += around[i] + 2 * m * rest[i] + n * m * m;
    }
  });
}

template <bool has_addend, bool relu, class T>
void normalize_strip(const Division& of, const Forward<T>& op, std::int64_t first,
                     std::int64_t channel, std::int64_t rows) {
  const std::int64_t channels = of.image().channels;
  for_each_vector(channels, [&](auto part, std::int64_t c) {
    const Floats mean = load(part, op.mean + channel + c);
    const Floats factor =
        load(part, op.scale + channel + c) * load(part, op.inverse_deviation + channel + c);
    const Floats shift = load(part, op.shift + channel + c);
    for (std::int64_t r = 0; r < rows; ++r) {
      const std::int64_t at = first + r * channels + c;
      Floats y = (load(part, op.x + at) - mean) * factor + shift;
      if constexpr (has_addend) {
        y += load(part, op.addend + at);
      }
      if constexpr (relu) {
        y = where(y < all(0), all(0), y);
      }
      store(part, y, op.y + at);
    }
  });
}

template <bool has_addend, bool relu, class T>
void batch_norm(int threads, const Division& of, const Forward<T>& op, const Sums& sums) {
#pragma omp parallel num_threads(threads) if (threads > 1)
  {
    const int thread = omp_get_thread_num();
    double* sum = sums.first(thread);
    double* squares = sums.second(thread);
    std::fill_n(sum, 2 * of.channels(), 0.0);
    of.run(
        [&](std::int64_t first, std::int64_t channel, std::int64_t rows) {
          add_strip(of, op.x + first, rows, sum + channel, squares + channel);
        },
        [&](std::int64_t channel) {
          const int all = omp_get_num_threads();
          const double mean = sum_over_threads(sums, false, all, channel) / of.pixels();
          const double variance =
              sum_over_threads(sums, true, all, channel) / of.pixels() - mean * mean;
          op.mean[channel] = static_cast<float>(mean);
          op.inverse_deviation[channel] =
              static_cast<float>(1 / std::sqrt(std::max(variance, 0.0) + op.epsilon));
        },
        [&](std::int64_t first, std::int64_t channel, std::int64_t rows) {
          normalize_strip<has_addend, relu>(of, op, first, channel, rows);
        });
  }
}

// ---- backward

template <class T>
struct Backward {
  const T* x;
  const float *scale, *mean, *inverse_deviation;
  const T *y, *dy, *dy_more;
  T* dx;
  float *dscale, *dshift;
  T* daddend;
};

template <bool has_more, bool relu, class Part, class T>
Floats gradient(Part part, const Backward<T>& op, std::int64_t at) {
  Floats dz = load(part, op.dy + at);
  if constexpr (has_more) {
    dz += load(part, op.dy_more + at);
  }
  if constexpr (relu) {
    dz = where(load(part, op.y + at) > all(0), dz, all(0));
  }
  return dz;
}

/// Whether the second pass finds dz in daddend, unrounded, where the first one left it.
template <class T>
bool keeps_gradient(const Backward<T>& op) {
  return std::is_same_v<T, float> && op.daddend != nullptr;
}

template <bool has_more, bool relu, class T>
void add_gradient_strip(const Division& of, const Backward<T>& op, std::int64_t first,
                        std::int64_t channel, std::int64_t rows, double* sum, double* products) {
  const std::int64_t channels = of.image().channels;
  for_each_vector(channels, [&](auto part, std::int64_t c) {
    const Floats mean = load(part, op.mean + channel + c);
    const auto [dz, product] = sum_of_rows<2>(rows, [&](std::int64_t r) {
      const std::int64_t at = first + r * channels + c;
      const Floats term = gradient<has_more, relu>(part, op, at);
      if (keeps_gradient(op)) {
        store(part, term, op.daddend + at);
      }
      return std::array{term, term * (load(part, op.x + at) - mean)};
    });
    add_in_double(part, dz, sum + c);
    add_in_double(part, product, products + c);
  });
}

template <bool has_more, bool relu, class T>
void differentiate_strip(const Division& of, const Backward<T>& op, std::int64_t first,
                         std::int64_t channel, std::int64_t rows) {
  const std::int64_t channels = of.image().channels;
  const auto per_pixel = static_cast<float>(1 / of.pixels());
  for_each_vector(channels, [&](auto part, std::int64_t c) {
    const Floats mean = load(part, op.mean + channel + c);
    const Floats inverse = load(part, op.inverse_deviation + channel + c);
    const Floats factor = load(part, op.scale + channel + c) * inverse;
    const Floats shift = load(part, op.dshift + channel + c) * per_pixel;
    const Floats slope = load(part, op.dscale + channel + c) * inverse * per_pixel;
    for (std::int64_t r = 0; r < rows; ++r) {
      const std::int64_t at = first + r * channels + c;
      const Floats dz =
          keeps_gradient(op) ? load(part, op.daddend + at) : gradient<has_more, relu>(part, op, at);
      const Floats x = load(part, op.x + at) - mean;
      if (op.daddend != nullptr && !keeps_gradient(op)) {
        store(part, dz, op.daddend + at);
      }
      store(part, factor * (dz - shift - x * slope), op.dx + at);
    }
  });
}

template <bool has_more, bool relu, class T>
void batch_norm_grad(int threads, const Division& of, const Backward<T>& op, const Sums& sums) {
#pragma omp parallel num_threads(threads) if (threads > 1)
  {
    const int thread = omp_get_thread_num();
    double* sum = sums.first(thread);
    double* products = sums.second(thread);
    std::fill_n(sum, 2 * of.channels(), 0.0);
    of.run(
        [&](std::int64_t first, std::int64_t channel, std::int64_t rows) {
          add_gradient_strip<has_more, relu>(of, op, first, channel, rows, sum + channel,
                                             products + channel);
        },
        [&](std::int64_t channel) {
          const int all = omp_get_num_threads();
          op.dshift[channel] = static_cast<float>(sum_over_threads(sums, false, all, channel));
          op.dscale[channel] = static_cast<float>(sum_over_threads(sums, true, all, channel) *
                                                  op.inverse_deviation[channel]);
        },
        [&](std::int64_t first, std::int64_t channel, std::int64_t rows) {
          differentiate_strip<has_more, relu>(of, op, first, channel, rows);
        });
  }
}

/// work(a, b) with both as types.
template <class Work>
auto with_flags(bool a, bool b, const Work& work) {
  if (a) {
    return b ? work(std::true_type{}, std::true_type{}) : work(std::true_type{}, std::false_type{});
  }
  return b ? work(std::false_type{}, std::true_type{}) : work(std::false_type{}, std::false_type{});
}

}  // namespace

void lower(const BatchNorm& op, Lowering& to) {
  const Tensor& x = to[op.x];
  const Layout layout = image_layout(x);
  const int threads = to.threads_for(op.x);
  const Division division({x, x.type}, threads, bytes(x.type));
  with_float(x.type, [&](auto zero) {
    using T = decltype(zero);
    with_flags(op.addend != none, op.activation == Activation::relu,
               [&](auto has_addend, auto relu) {
                 to.add(OpCategory::normalization, threads,
                        {reads(op.x, layout), reads(op.scale), reads(op.shift),
                         op.addend == none ? Argument{} : reads(op.addend, layout),
                         writes(op.y, layout), writes(op.mean), writes(op.inverse_deviation),
                         to.reserve(Sums::bytes(threads, division.channels()))},
                        [division, epsilon = op.epsilon](const Invocation& call) {
                          batch_norm<decltype(has_addend)::value, decltype(relu)::value, T>(
                              call.threads, division,
                              {.x = call.operand<const T>(0),
                               .scale = call.operand<const float>(1),
                               .shift = call.operand<const float>(2),
                               .addend = call.operand<const T>(3),
                               .y = call.operand<T>(4),
                               .mean = call.operand<float>(5),
                               .inverse_deviation = call.operand<float>(6),
                               .epsilon = epsilon},
                              Sums(call.operand<double>(7), division.channels()));
                        });
               });
  });
}

void lower(const BatchNormGrad& op, Lowering& to) {
  const Tensor& x = to[op.x];
  const Layout layout = image_layout(x);
  const int threads = to.threads_for(op.x);
  const Division division({x, x.type}, threads, bytes(x.type));
  const bool has_relu = op.activation == Activation::relu;
  const auto reads_image = [&](Id id, bool needed) {
    return needed ? reads(id, layout) : Argument{};
  };
  with_float(x.type, [&](auto zero) {
    using T = decltype(zero);
    with_flags(op.dy_more != none, has_relu, [&](auto has_more, auto relu) {
      to.add(OpCategory::normalization, threads,
             {reads(op.x, layout), reads(op.scale), reads(op.mean), reads(op.inverse_deviation),
              reads_image(op.y, has_relu), reads(op.dy, layout),
              reads_image(op.dy_more, op.dy_more != none), writes(op.dx, layout), writes(op.dscale),
              writes(op.dshift), op.daddend == none ? Argument{} : writes(op.daddend, layout),
              to.reserve(Sums::bytes(threads, division.channels()))},
             [division](const Invocation& call) {
               batch_norm_grad<decltype(has_more)::value, decltype(relu)::value, T>(
                   call.threads, division,
                   {.x = call.operand<const T>(0),
                    .scale = call.operand<const float>(1),
                    .mean = call.operand<const float>(2),
                    .inverse_deviation = call.operand<const float>(3),
                    .y = call.operand<const T>(4),
                    .dy = call.operand<const T>(5),
                    .dy_more = call.operand<const T>(6),
                    .dx = call.operand<T>(7),
                    .dscale = call.operand<float>(8),
                    .dshift = call.operand<float>(9),
                    .daddend = call.operand<T>(10)},
                   Sums(call.operand<double>(11), division.channels()));
             });
    });
  });
}

}  // namespace crossover::cpu
