// SPDX-License-Identifier: Apache-2.0
#include "../plan/launches/normalization.h"

#include <cmath>
#include <type_traits>

#include "../base/site.h"
#include "convert.cuh"
#include "grid.cuh"

namespace crossover::cuda {
namespace {

/// The threads that a group of an image has: a block.
struct ThreadsOfBlock {
  static constexpr int count = block_threads;

  /// Of its threads, in each of them.
  static __device__ float sum(float value) {
    __shared__ float of_warps[block_warps];
    value = group_sum(value);
    __syncthreads();  // what the call before has left is read
    if (threadIdx.x % warp_threads == 0) {
      of_warps[threadIdx.x / warp_threads] = value;
    }
    __syncthreads();
    float sum = 0;
    for (int warp = 0; warp < block_warps; ++warp) {
      sum += of_warps[warp];
    }
    return sum;
  }
};

/// The threads that a row has: a warp.
struct ThreadsOfWarp {
  static constexpr int count = warp_threads;

  static __device__ float sum(float value) { return group_sum(value); }
};

/// The numbers of one group of one image, in the order in which they lie.
struct ImageGroup {
  using Threads = ThreadsOfBlock;

  __device__ ImageGroup(const GroupedImages& images, std::int64_t i)
      : of_group(images.channels / images.groups),
        channel(i % images.groups * of_group),
        channels(images.channels),
        pixels(images.pixels),
        is_plain(images.layout == Layout::plain),
        first(is_plain ? i * of_group * pixels : i / images.groups * channels * pixels + channel) {}

  __device__ std::int64_t size() const { return of_group * pixels; }
  __device__ std::int64_t at(std::int64_t k) const {
    return first + (is_plain ? k : k / of_group * channels + k % of_group);
  }
  __device__ std::int64_t channel_of(std::int64_t k) const {
    return channel + (is_plain ? k / pixels : k % of_group);
  }

  std::int64_t of_group, channel, channels, pixels;
  bool is_plain;
  std::int64_t first;
};

/// Those of a row.
struct Row {
  using Threads = ThreadsOfWarp;

  __device__ Row(const GroupedImages& rows, std::int64_t i)
      : first(i * rows.channels), width(rows.channels) {}

  __device__ std::int64_t size() const { return width; }
  __device__ std::int64_t at(std::int64_t k) const { return first + k; }
  static __device__ std::int64_t channel_of(std::int64_t k) { return k; }

  std::int64_t first, width;
};

/// body(i, Group) for each that shares a mean, all threads of a team with the same one.
template <class Group, class Body>
__device__ void for_groups(const GroupedImages& images, const Body& body) {
  const std::int64_t all = thread_count() / Group::Threads::count;
  for (std::int64_t i = thread_index() / Group::Threads::count; i < images.batch * images.groups;
       i += all) {
    body(i, Group(images, i));
  }
}

/// body(k) for the thread's share of a group's numbers.
template <class Group, class Body>
__device__ void for_numbers(const Group& group, const Body& body) {
  for (std::int64_t k = threadIdx.x % Group::Threads::count; k < group.size();
       k += Group::Threads::count) {
    body(k);
  }
}

template <class Group, class T>
__global__ void group_norm_kernel(GroupNormArguments<Called> of) {
  const T* x = of.x;
  T* y = of.y;
  for_groups<Group>(of.images, [&](std::int64_t i, const Group& group) {
    using Threads = typename Group::Threads;
    const auto size = static_cast<float>(group.size());
    float mean = 0;
    if (of.mean != nullptr) {
      for_numbers(group, [&](std::int64_t k) { mean += widen(x[group.at(k)]); });
      mean = Threads::sum(mean) / size;
    }
    float squares = 0;
    for_numbers(group, [&](std::int64_t k) {
      const float apart = widen(x[group.at(k)]) - mean;
      squares += apart * apart;
    });
    const float inverse = 1 / std::sqrt(Threads::sum(squares) / size + of.epsilon);
    for_numbers(group, [&](std::int64_t k) {
      const std::int64_t channel = group.channel_of(k);
      const float scale = of.scale != nullptr ? of.scale[channel] : 1.0F;
      const float shift = of.shift != nullptr ? of.shift[channel] : 0.0F;
      const std::int64_t at = group.at(k);
      y[at] = narrow<T>(scale * ((widen(x[at]) - mean) * inverse) + shift);
    });
    if (threadIdx.x % Threads::count == 0) {
      if (of.mean != nullptr) {
        of.mean[i] = mean;
      }
      of.inverse_deviation[i] = inverse;
    }
  });
}

template <class Group, class T>
__global__ void group_norm_grad_kernel(GroupNormGradArguments<Called> of) {
  const T* x = of.x;
  const T* dy = of.dy;
  T* dx = of.dx;
  for_groups<Group>(of.images, [&](std::int64_t i, const Group& group) {
    using Threads = typename Group::Threads;
    const auto size = static_cast<float>(group.size());
    const bool centred = of.mean != nullptr;
    const float mean = centred ? of.mean[i] : 0.0F;
    const float inverse = of.inverse_deviation[i];
    const auto dz = [&](std::int64_t k) {
      return widen(dy[group.at(k)]) * (of.scale != nullptr ? of.scale[group.channel_of(k)] : 1.0F);
    };
    const auto normal = [&](std::int64_t k) { return (widen(x[group.at(k)]) - mean) * inverse; };
    float sum = 0;
    float products = 0;
    for_numbers(group, [&](std::int64_t k) {
      const float term = dz(k);
      sum += term;
      products += term * normal(k);
    });
    sum = centred ? Threads::sum(sum) / size : 0.0F;
    products = Threads::sum(products) / size;
    for_numbers(group, [&](std::int64_t k) {
      dx[group.at(k)] = narrow<T>(inverse * (dz(k) - sum - normal(k) * products));
    });
  });
}

/// Of images in the plain layout: a block for each channel.
template <class T>
__global__ void group_norm_channel_sums_kernel(GroupNormGradSumsArguments<Called> of) {
  const T* x = of.x;
  const T* dy = of.dy;
  const GroupedImages& images = of.images;
  for (std::int64_t channel = blockIdx.x; channel < images.channels; channel += gridDim.x) {
    float sum = 0;
    float products = 0;
    for (std::int64_t image = 0; image < images.batch; ++image) {
      const std::int64_t plane = image * images.channels + channel;
      const std::int64_t mean = plane / (images.channels / images.groups);
      for (std::int64_t k = threadIdx.x; k < images.pixels; k += block_threads) {
        const float slope = widen(dy[plane * images.pixels + k]);
        const float apart = widen(x[plane * images.pixels + k]) - of.mean[mean];
        sum += slope;
        products += slope * (apart * of.inverse_deviation[mean]);
      }
    }
    sum = ThreadsOfBlock::sum(sum);
    products = ThreadsOfBlock::sum(products);
    if (threadIdx.x == 0) {
      of.sums[channel] = sum;
      of.products[channel] = products;
    }
  }
}

/// Of rows, or of channels-last images, whose pixels are rows: a block takes 32 channels and a part
/// of the rows, of which each warp takes every eighth.
template <bool are_rows, class T>
__global__ void group_norm_column_sums_kernel(GroupNormGradSumsArguments<Called> of, unsigned tiles,
                                              std::int64_t rows_of_a_part) {
  __shared__ float of_products[block_threads];
  __shared__ float of_sums[block_threads];
  const GroupedImages& images = of.images;
  const int lane = static_cast<int>(threadIdx.x) % warp_threads;
  const int warp = static_cast<int>(threadIdx.x) / warp_threads;
  const std::int64_t channel = static_cast<std::int64_t>(blockIdx.x % tiles) * warp_threads + lane;
  const std::int64_t part = blockIdx.x / tiles;
  const std::int64_t next = (part + 1) * rows_of_a_part;
  const std::int64_t rows = images.batch * images.pixels;
  const std::int64_t end = next < rows ? next : rows;
  float products = 0;
  float sum = 0;
  if (channel < images.channels) {
    const T* x = of.x;
    const T* dy = of.dy;
    for (std::int64_t row = part * rows_of_a_part + warp; row < end; row += block_warps) {
      const std::int64_t at = row * images.channels + channel;
      const std::int64_t i = are_rows ? row
                                      : row / images.pixels * images.groups +
                                            channel / (images.channels / images.groups);
      const float gradient = widen(dy[at]);
      const float mean = of.mean != nullptr ? of.mean[i] : 0.0F;
      products += gradient * ((widen(x[at]) - mean) * of.inverse_deviation[i]);
      sum += gradient;
    }
  }
  of_products[threadIdx.x] = products;
  of_sums[threadIdx.x] = sum;
  __syncthreads();
  if (warp == 0 && channel < images.channels) {
    for (int w = 1; w < block_warps; ++w) {
      products += of_products[w * warp_threads + lane];
      sum += of_sums[w * warp_threads + lane];
    }
    of.products[part * images.channels + channel] = products;
    if (of.sums != nullptr) {
      of.sums[part * images.channels + channel] = sum;
    }
  }
}

/// work(whether these are rows, T(0)).
template <class Work>
void with_groups(const GroupedImages& images, Type type, const Work& work) {
  with_float(type, [&](auto zero) {
    images.are_rows() ? work(std::true_type{}, zero) : work(std::false_type{}, zero);
  });
}

template <bool are_rows>
using GroupOf = std::conditional_t<are_rows, Row, ImageGroup>;

template <class Group>
Grid teams_for(const GroupedImages& images) {
  return grid_for(images.means() * Group::Threads::count);
}

}  // namespace

void call(const GroupNormArguments<Called>& of, const Site& site) {
  with_groups(of.images, of.x.type, [&](auto are_rows, auto zero) {
    using Group = GroupOf<decltype(are_rows)::value>;
    launch(group_norm_kernel<Group, decltype(zero)>, teams_for<Group>(of.images), site.stream, of);
  });
}

void call(const GroupNormGradArguments<Called>& of, const Site& site) {
  with_groups(of.images, of.x.type, [&](auto are_rows, auto zero) {
    using Group = GroupOf<decltype(are_rows)::value>;
    launch(group_norm_grad_kernel<Group, decltype(zero)>, teams_for<Group>(of.images), site.stream,
           of);
  });
}

void call(const GroupNormGradSumsArguments<Called>& of, const Site& site) {
  with_groups(of.images, of.x.type, [&](auto are_rows, auto zero) {
    using T = decltype(zero);
    if (!are_rows && of.images.layout == Layout::plain) {
      return launch(group_norm_channel_sums_kernel<T>, grid_for(of.images.channels * block_threads),
                    site.stream, of);
    }
    const auto tiles =
        static_cast<unsigned>((of.images.channels + warp_threads - 1) / warp_threads);
    const std::int64_t rows = of.images.batch * of.images.pixels;
    launch(group_norm_column_sums_kernel<decltype(are_rows)::value, T>,
           Grid{tiles * static_cast<unsigned>(of.parts), block_threads}, site.stream, of, tiles,
           (rows + of.parts - 1) / of.parts);
  });
}

}  // namespace crossover::cuda
