// SPDX-License-Identifier: Apache-2.0
// Normalization of images in two passes over memory, forward and backward: sums of each channel,
// then everything else. Of a batch some channel blocks, of groups an image, go through both before
// the next ones, so that the second pass finds in the cache what the first one read.
#include <omp.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>
#include <utility>

#include "../base/layout.h"
#include "../base/vector.h"
#include "operations.h"

namespace crossover::cpu {
namespace {

/// Pixels whose sums are kept in registers, in float32, before they are added in double.
constexpr std::int64_t strip = 64;

/// Numbers that share a mean: which mean, of which channels, whose sums are those of some threads.
struct Shared {
  std::int64_t mean, channel, channels;
  std::int64_t first_thread, threads;
};

/// How images are divided among threads. Of a batch each has some strips of all pixels, the same
/// for each block of channels; of groups it has some images, one after the other.
class Division {
 public:
  Division(const Tensor& x, NormKind kind, std::int64_t groups, int threads)
      : image_(x, x.type),
        is_batch_(kind == NormKind::batch),
        of_group_(is_batch_ ? 1 : x.shape[1] / groups),
        strips_((image_.pixels() + strip - 1) / strip),
        blocks_(image_.blocks) {
    if (is_batch_) {
      constexpr std::int64_t cached_bytes = 524288;
      const std::int64_t of_block =
          image_.batch * image_.pixels() * image_.channels * bytes(x.type) / threads + 1;
      blocks_ = std::clamp<std::int64_t>(cached_bytes / of_block, 1, image_.blocks);
    } else {
      images_ = std::exchange(image_.batch, 1);
    }
  }

  [[nodiscard]] bool is_batch() const { return is_batch_; }
  [[nodiscard]] const ImageRows& image() const { return image_; }
  [[nodiscard]] std::int64_t channels() const { return image_.blocks * image_.channels; }
  /// Of numbers that share a mean.
  [[nodiscard]] double count() const {
    return static_cast<double>(image_.batch * image_.pixels() * of_group_);
  }

  [[nodiscard]] std::int64_t mean_of(std::int64_t image, std::int64_t channel) const {
    return is_batch_ ? channel : (image * channels() + channel) / of_group_;
  }

  /// In a parallel region: begin(image), then sum(first element, first channel, rows) for each
  /// strip of some blocks, then, by one of the threads, finish(Shared) for each mean of them, then
  /// apply(...) like sum(...).
  template <class Begin, class Sum, class Finish, class Apply>
  void run(const Begin& begin, const Sum& sum, const Finish& finish, const Apply& apply) const {
    const std::int64_t thread = omp_get_thread_num();
    const std::int64_t threads = omp_get_num_threads();
    if (is_batch_) {
      begin(0);
      for (std::int64_t first = 0; first < image_.blocks; first += blocks_) {
        const std::int64_t end = std::min(image_.blocks, first + blocks_);
        for_strips(thread, threads, 0, first, end, sum);
#pragma omp barrier
        const std::int64_t channel = first * image_.channels;
        const std::int64_t count = end * image_.channels - channel;
        for (std::int64_t c = count * thread / threads; c < count * (thread + 1) / threads; ++c) {
          finish(Shared{channel + c, channel + c, 1, 0, threads});
        }
#pragma omp barrier
        for_strips(thread, threads, 0, first, end, apply);
      }
      return;
    }
    for (std::int64_t image = images_ * thread / threads; image < images_ * (thread + 1) / threads;
         ++image) {
      begin(image);
      for_strips(0, 1, image, 0, image_.blocks, sum);
      for (std::int64_t c = 0; c < channels(); c += of_group_) {
        finish(Shared{mean_of(image, c), c, of_group_, thread, 1});
      }
      for_strips(0, 1, image, 0, image_.blocks, apply);
    }
  }

 private:
  /// Of a thread's share of the images from `image` on.
  template <class Work>
  void for_strips(std::int64_t thread, std::int64_t threads, std::int64_t image, std::int64_t begin,
                  std::int64_t end, const Work& work) const {
    const std::int64_t all = image_.batch * strips_;
    for (std::int64_t block = begin; block < end; ++block) {
      for (std::int64_t s = all * thread / threads; s < all * (thread + 1) / threads; ++s) {
        const std::int64_t plane = (image + s / strips_) * image_.blocks + block;
        const std::int64_t row = s % strips_ * strip;
        work((plane * image_.pixels() + row) * image_.channels, block * image_.channels,
             std::min(strip, image_.pixels() - row));
      }
    }
  }

  ImageRows image_;  ///< of groups one image
  bool is_batch_;
  std::int64_t of_group_;  ///< channels
  std::int64_t strips_;    ///< of an image
  std::int64_t blocks_;    ///< at once
  std::int64_t images_ = 1;
};

/// Numbers for each channel. Of each thread two sums, and of groups two more over its images; and
/// what the second pass takes, which is that of all threads of a batch, and of groups expands what
/// each of a thread's image has.
class PerChannel {
 public:
  PerChannel(const Division& of, std::int64_t threads, double* memory)
      : channels_(of.channels()),
        arrays_(arrays(of)),
        floats_of_thread_(of.is_batch() ? 0 : 4 * channels_),
        sums_(memory),
        floats_(reinterpret_cast<float*>(memory + threads * arrays_ * channels_)) {}

  static std::int64_t bytes(const Division& of, std::int64_t threads) {
    const std::int64_t doubles = threads * arrays(of);
    const std::int64_t floats = 4 * (of.is_batch() ? 1 : threads);
    return of.channels() * (doubles * static_cast<std::int64_t>(sizeof(double)) +
                            floats * static_cast<std::int64_t>(sizeof(float)));
  }

  [[nodiscard]] double* sums(std::int64_t thread, std::int64_t which = 0) const {
    return sums_ + (thread * arrays_ + which) * channels_;
  }
  [[nodiscard]] float* floats(std::int64_t thread, std::int64_t which) const {
    return floats_ + thread * floats_of_thread_ + which * channels_;
  }

  /// Of a channel, over the threads.
  [[nodiscard]] double sum(std::int64_t channel, std::int64_t which, std::int64_t first_thread,
                           std::int64_t threads) const {
    double sum = 0;
    for (std::int64_t thread = first_thread; thread < first_thread + threads; ++thread) {
      sum += sums(thread, which)[channel];
    }
    return sum;
  }
  /// Of what shares a mean.
  [[nodiscard]] double sum(const Shared& of, std::int64_t which) const {
    double all = 0;
    for (std::int64_t c = of.channel; c < of.channel + of.channels; ++c) {
      all += sum(c, which, of.first_thread, of.threads);
    }
    return all;
  }

 private:
  /// Of doubles, of each thread.
  static std::int64_t arrays(const Division& of) { return of.is_batch() ? 2 : 4; }

  std::int64_t channels_, arrays_, floats_of_thread_;
  double* sums_;
  float* floats_;
};

template <class Part>
void add_in_double(Part part, Floats values, double* to) {
  for (std::size_t i = 0; i < part.size(); ++i) {
    to[i] += static_cast<double>(values[i]);
  }
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

// What goes through a strip is no part of its callers, which are several: its loops take long to
// compile, and a call is nothing beside them.

/// Sums of a strip and of its squares. The squares are taken around the strip's own mean, so that a
/// mean far from zero costs no digits.
template <class T>
[[gnu::noinline]] void add_strip(const Division& of, const T* x, std::int64_t rows, double* sum,
                                 double* squares) {
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

/// Statistics are by channel.
template <bool has_addend, bool relu, class T>
[[gnu::noinline]] void normalize_strip(const Division& of, const Forward<T>& op, std::int64_t first,
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
void normalize(int threads, const Division& of, const Forward<T>& op, const PerChannel& numbers) {
#pragma omp parallel num_threads(threads) if (threads > 1)
  {
    const int thread = omp_get_thread_num();
    double* sum = numbers.sums(thread);
    double* squares = sum + of.channels();
    Forward<T> by_channel = op;
    if (!of.is_batch()) {
      by_channel.mean = numbers.floats(thread, 0);
      by_channel.inverse_deviation = numbers.floats(thread, 1);
    }
    of.run([&](std::int64_t /*image*/) { std::fill_n(sum, 2 * of.channels(), 0.0); },
           [&](std::int64_t first, std::int64_t channel, std::int64_t rows) {
             add_strip(of, op.x + first, rows, sum + channel, squares + channel);
           },
           [&](const Shared& all) {
             const double mean = numbers.sum(all, 0) / of.count();
             const double variance = numbers.sum(all, 1) / of.count() - mean * mean;
             const double inverse = 1 / std::sqrt(std::max(variance, 0.0) + op.epsilon);
             op.mean[all.mean] = static_cast<float>(mean);
             op.inverse_deviation[all.mean] = static_cast<float>(inverse);
             std::fill_n(by_channel.mean + all.channel, all.channels, op.mean[all.mean]);
             std::fill_n(by_channel.inverse_deviation + all.channel, all.channels,
                         op.inverse_deviation[all.mean]);
           },
           [&](std::int64_t first, std::int64_t channel, std::int64_t rows) {
             normalize_strip<has_addend, relu>(of, by_channel, first, channel, rows);
           });
  }
}

// ---- backward

template <class T>
struct Backward {
  const T* x = nullptr;
  const float *scale = nullptr, *mean = nullptr, *inverse_deviation = nullptr;
  const T *y = nullptr, *dy = nullptr, *dy_more = nullptr;
  T* dx = nullptr;
  float *dscale = nullptr, *dshift = nullptr;
  T* daddend = nullptr;
  /// By channel: dx = scale * inverse_deviation * dz - offset - (x - mean) * slope.
  float *offset = nullptr, *slope = nullptr;
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

/// Statistics are by channel, here and below.
template <bool has_more, bool relu, class T>
[[gnu::noinline]] void add_gradient_strip(const Division& of, const Backward<T>& op,
                                          std::int64_t first, std::int64_t channel,
                                          std::int64_t rows, double* sum, double* products) {
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
[[gnu::noinline]] void differentiate_strip(const Division& of, const Backward<T>& op,
                                           std::int64_t first, std::int64_t channel,
                                           std::int64_t rows) {
  const std::int64_t channels = of.image().channels;
  for_each_vector(channels, [&](auto part, std::int64_t c) {
    const Floats mean = load(part, op.mean + channel + c);
    const Floats factor =
        load(part, op.scale + channel + c) * load(part, op.inverse_deviation + channel + c);
    const Floats offset = load(part, op.offset + channel + c);
    const Floats slope = load(part, op.slope + channel + c);
    for (std::int64_t r = 0; r < rows; ++r) {
      const std::int64_t at = first + r * channels + c;
      const Floats dz =
          keeps_gradient(op) ? load(part, op.daddend + at) : gradient<has_more, relu>(part, op, at);
      const Floats x = load(part, op.x + at) - mean;
      if (op.daddend != nullptr && !keeps_gradient(op)) {
        store(part, dz, op.daddend + at);
      }
      store(part, factor * dz - (offset + x * slope), op.dx + at);
    }
  });
}

/// What the numbers that share a mean take of their sums, and what these are to the parameters.
template <class T>
void finish_gradient(const Division& of, const Backward<T>& op, const Shared& all,
                     const PerChannel& numbers) {
  const double inverse = op.inverse_deviation[all.channel];
  std::array<double, 2> sums{};
  for (std::int64_t c = all.channel; c < all.channel + all.channels; ++c) {
    const double shift = numbers.sum(c, 0, all.first_thread, all.threads);
    const double scale = numbers.sum(c, 1, all.first_thread, all.threads) * inverse;
    sums[0] += op.scale[c] * shift;
    sums[1] += op.scale[c] * scale;
    if (of.is_batch()) {
      op.dshift[c] = static_cast<float>(shift);
      op.dscale[c] = static_cast<float>(scale);
    } else {
      numbers.sums(all.first_thread, 2)[c] += shift;
      numbers.sums(all.first_thread, 3)[c] += scale;
    }
  }
  std::fill_n(op.offset + all.channel, all.channels,
              static_cast<float>(inverse * sums[0] / of.count()));
  std::fill_n(op.slope + all.channel, all.channels,
              static_cast<float>(inverse * inverse * sums[1] / of.count()));
}

template <bool has_more, bool relu, class T>
void differentiate(int threads, const Division& of, const Backward<T>& op,
                   const PerChannel& numbers) {
  const std::int64_t channels = of.channels();
#pragma omp parallel num_threads(threads) if (threads > 1)
  {
    const int thread = omp_get_thread_num();
    double* sum = numbers.sums(thread);
    Backward<T> by_channel = op;
    by_channel.offset = numbers.floats(thread, 0);
    by_channel.slope = numbers.floats(thread, 1);
    float* const mean = numbers.floats(thread, 2);
    float* const inverse = numbers.floats(thread, 3);
    if (!of.is_batch()) {
      by_channel.mean = mean;
      by_channel.inverse_deviation = inverse;
      std::fill_n(numbers.sums(thread, 2), 2 * channels, 0.0);
    }
    of.run(
        [&](std::int64_t image) {
          std::fill_n(sum, 2 * channels, 0.0);
          for (std::int64_t c = 0; !of.is_batch() && c < channels; ++c) {
            mean[c] = op.mean[of.mean_of(image, c)];
            inverse[c] = op.inverse_deviation[of.mean_of(image, c)];
          }
        },
        [&](std::int64_t first, std::int64_t channel, std::int64_t rows) {
          add_gradient_strip<has_more, relu>(of, by_channel, first, channel, rows, sum + channel,
                                             sum + channels + channel);
        },
        [&](const Shared& all) { finish_gradient(of, by_channel, all, numbers); },
        [&](std::int64_t first, std::int64_t channel, std::int64_t rows) {
          differentiate_strip<has_more, relu>(of, by_channel, first, channel, rows);
        });
  }
  for (std::int64_t c = 0; !of.is_batch() && c < channels; ++c) {
    op.dshift[c] = static_cast<float>(numbers.sum(c, 2, 0, threads));
    op.dscale[c] = static_cast<float>(numbers.sum(c, 3, 0, threads));
  }
}

}  // namespace

void lower_of_images(const Norm& op, Lowering& to) {
  const Tensor& x = to[op.x];
  const Layout layout = image_layout(x);
  const int threads = to.threads_for(op.x);
  const Division division(x, op.kind, op.groups, threads);
  with_float(x.type, [&](auto zero) {
    using T = decltype(zero);
    with_bool(op.addend != none, [&](auto has_addend) {
      using HasAddend = decltype(has_addend);
      with_bool(op.activation == Activation::relu, [&](auto relu) {
        to.add(OpCategory::normalization, threads,
               {reads(op.x, layout), reads(op.scale), reads(op.shift),
                has_addend ? reads(op.addend, layout) : Argument{}, writes(op.y, layout),
                writes(op.mean), writes(op.inverse_deviation),
                to.reserve(PerChannel::bytes(division, threads))},
               [division, epsilon = op.epsilon](const Invocation& call) {
                 normalize<HasAddend::value, decltype(relu)::value, T>(
                     call.threads, division,
                     {.x = call.operand<const T>(0),
                      .scale = call.operand<const float>(1),
                      .shift = call.operand<const float>(2),
                      .addend = call.operand<const T>(3),
                      .y = call.operand<T>(4),
                      .mean = call.operand<float>(5),
                      .inverse_deviation = call.operand<float>(6),
                      .epsilon = epsilon},
                     PerChannel(division, call.threads, call.operand<double>(7)));
               });
      });
    });
  });
}

void lower_of_images(const NormGrad& op, Lowering& to) {
  const Tensor& x = to[op.x];
  const Layout layout = image_layout(x);
  const int threads = to.threads_for(op.x);
  const Division division(x, op.kind, op.groups, threads);
  with_float(x.type, [&](auto zero) {
    using T = decltype(zero);
    with_bool(op.dy_more != none, [&](auto has_more) {
      using HasMore = decltype(has_more);
      with_bool(op.activation == Activation::relu, [&](auto relu) {
        to.add(OpCategory::normalization, threads,
               {reads(op.x, layout), reads(op.scale), reads(op.mean), reads(op.inverse_deviation),
                relu ? reads(op.y, layout) : Argument{}, reads(op.dy, layout),
                has_more ? reads(op.dy_more, layout) : Argument{}, writes(op.dx, layout),
                writes(op.dscale), writes(op.dshift),
                op.daddend == none ? Argument{} : writes(op.daddend, layout),
                to.reserve(PerChannel::bytes(division, threads))},
               [division](const Invocation& call) {
                 differentiate<HasMore::value, decltype(relu)::value, T>(
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
                     PerChannel(division, call.threads, call.operand<double>(11)));
               });
      });
    });
  });
}

}  // namespace crossover::cpu
