// SPDX-License-Identifier: Apache-2.0
#include "group_norm.h"

#include <cmath>

#include "convert.cuh"
#include "site.h"
#include "warp.cuh"

namespace crossover::cuda {
namespace {

/// One group of one image, or, where `groups` is that of channels, one channel.
struct Group {
  std::int64_t first, image_first, channel, channels, of_group, pixels;
  bool is_plain;

  __device__ std::int64_t size() const { return of_group * pixels; }

  /// Of its element i, in the order in which the group lies.
  __device__ std::int64_t at(std::int64_t i) const {
    return is_plain ? first + i : image_first + i / of_group * channels + channel + i % of_group;
  }
  __device__ std::int64_t channel_of(std::int64_t i) const {
    return channel + (is_plain ? i / pixels : i % of_group);
  }
};

__device__ inline Group group_of(const GroupedImages& images, std::int64_t i) {
  const std::int64_t of_group = images.channels / images.groups;
  return {.first = i * of_group * images.pixels,
          .image_first = i / images.groups * images.channels * images.pixels,
          .channel = i % images.groups * of_group,
          .channels = images.channels,
          .of_group = of_group,
          .pixels = images.pixels,
          .is_plain = images.layout == Layout::plain};
}

/// Of all threads of a block, in each of them.
__device__ inline float sum_of_group(float value) {
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

template <class T>
__global__ void group_norm_kernel(GroupNormArguments<Called> of) {
  const T* x = of.x;
  T* y = of.y;
  for (std::int64_t i = blockIdx.x; i < of.images.batch * of.images.groups; i += gridDim.x) {
    const Group group = group_of(of.images, i);
    const auto size = static_cast<float>(group.size());
    float sum = 0;
    for (std::int64_t k = threadIdx.x; k < group.size(); k += block_threads) {
      sum += widen(x[group.at(k)]);
    }
    const float mean = sum_of_group(sum) / size;
    float squares = 0;
    for (std::int64_t k = threadIdx.x; k < group.size(); k += block_threads) {
      const float apart = widen(x[group.at(k)]) - mean;
      squares += apart * apart;
    }
    const float inverse = 1 / std::sqrt(sum_of_group(squares) / size + of.epsilon);
    for (std::int64_t k = threadIdx.x; k < group.size(); k += block_threads) {
      const std::int64_t at = group.at(k);
      const std::int64_t channel = group.channel_of(k);
      y[at] = narrow<T>(of.scale[channel] * ((widen(x[at]) - mean) * inverse) + of.shift[channel]);
    }
    if (threadIdx.x == 0) {
      of.mean[i] = mean;
      of.inverse_deviation[i] = inverse;
    }
  }
}

template <class T>
__global__ void group_norm_grad_kernel(GroupNormGradArguments<Called> of) {
  const T* x = of.x;
  const T* dy = of.dy;
  T* dx = of.dx;
  for (std::int64_t i = blockIdx.x; i < of.images.batch * of.images.groups; i += gridDim.x) {
    const Group group = group_of(of.images, i);
    const auto size = static_cast<float>(group.size());
    const float mean = of.mean[i];
    const float inverse = of.inverse_deviation[i];
    float sum = 0;
    float products = 0;
    for (std::int64_t k = threadIdx.x; k < group.size(); k += block_threads) {
      const std::int64_t at = group.at(k);
      const float dz = widen(dy[at]) * of.scale[group.channel_of(k)];
      sum += dz;
      products += dz * ((widen(x[at]) - mean) * inverse);
    }
    sum = sum_of_group(sum) / size;
    products = sum_of_group(products) / size;
    for (std::int64_t k = threadIdx.x; k < group.size(); k += block_threads) {
      const std::int64_t at = group.at(k);
      const float normal = (widen(x[at]) - mean) * inverse;
      const float dz = widen(dy[at]) * of.scale[group.channel_of(k)];
      dx[at] = narrow<T>(inverse * (dz - sum - normal * products));
    }
  }
}

/// Of images in the plain layout.
template <class T>
__global__ void group_norm_channel_sums_kernel(GroupNormGradSumsArguments<Called> of) {
  const T* x = of.x;
  const T* dy = of.dy;
  const std::int64_t of_group = of.images.channels / of.images.groups;
  for (std::int64_t channel = blockIdx.x; channel < of.images.channels; channel += gridDim.x) {
    float sum = 0;
    float products = 0;
    for (std::int64_t image = 0; image < of.images.batch; ++image) {
      const std::int64_t statistic = image * of.images.groups + channel / of_group;
      const float mean = of.mean[statistic];
      const float inverse = of.inverse_deviation[statistic];
      const std::int64_t first = (image * of.images.channels + channel) * of.images.pixels;
      for (std::int64_t k = threadIdx.x; k < of.images.pixels; k += block_threads) {
        const float slope = widen(dy[first + k]);
        sum += slope;
        products += slope * ((widen(x[first + k]) - mean) * inverse);
      }
    }
    sum = sum_of_group(sum);
    products = sum_of_group(products);
    if (threadIdx.x == 0) {
      of.dshift[channel] = sum;
      of.dscale[channel] = products;
    }
  }
}

/// Of channels-last images: a warp reads the channels of a pixel, of which each warp takes every
/// eighth.
template <class T>
__global__ void group_norm_column_sums_kernel(GroupNormGradSumsArguments<Called> of) {
  __shared__ float of_sums[block_threads];
  __shared__ float of_products[block_threads];
  const T* x = of.x;
  const T* dy = of.dy;
  const std::int64_t of_group = of.images.channels / of.images.groups;
  const int lane = static_cast<int>(threadIdx.x) % warp_threads;
  const int warp = static_cast<int>(threadIdx.x) / warp_threads;
  const std::int64_t channel = static_cast<std::int64_t>(blockIdx.x) * warp_threads + lane;
  float sum = 0;
  float products = 0;
  if (channel < of.images.channels) {
    for (std::int64_t image = 0; image < of.images.batch; ++image) {
      const std::int64_t statistic = image * of.images.groups + channel / of_group;
      const float mean = of.mean[statistic];
      const float inverse = of.inverse_deviation[statistic];
      for (std::int64_t pixel = warp; pixel < of.images.pixels; pixel += block_warps) {
        const std::int64_t at = (image * of.images.pixels + pixel) * of.images.channels + channel;
        const float slope = widen(dy[at]);
        sum += slope;
        products += slope * ((widen(x[at]) - mean) * inverse);
      }
    }
  }
  of_sums[threadIdx.x] = sum;
  of_products[threadIdx.x] = products;
  __syncthreads();
  if (warp == 0 && channel < of.images.channels) {
    for (int w = 1; w < block_warps; ++w) {
      sum += of_sums[w * warp_threads + lane];
      products += of_products[w * warp_threads + lane];
    }
    of.dshift[channel] = sum;
    of.dscale[channel] = products;
  }
}

/// A block each.
Grid blocks_for(std::int64_t count) { return grid_for(count * block_threads); }

}  // namespace

void call(const GroupNormArguments<Called>& of, const Site& site) {
  with_float(of.x.type, [&](auto zero) {
    launch(group_norm_kernel<decltype(zero)>, blocks_for(of.images.batch * of.images.groups),
           site.stream, of);
  });
}

void call(const GroupNormGradArguments<Called>& of, const Site& site) {
  with_float(of.x.type, [&](auto zero) {
    launch(group_norm_grad_kernel<decltype(zero)>, blocks_for(of.images.batch * of.images.groups),
           site.stream, of);
  });
}

void call(const GroupNormGradSumsArguments<Called>& of, const Site& site) {
  with_float(of.x.type, [&](auto zero) {
    using T = decltype(zero);
    if (of.images.layout == Layout::plain) {
      launch(group_norm_channel_sums_kernel<T>, blocks_for(of.images.channels), site.stream, of);
      return;
    }
    const auto tiles = (of.images.channels + warp_threads - 1) / warp_threads;
    launch(group_norm_column_sums_kernel<T>, Grid{static_cast<unsigned>(tiles), block_threads},
           site.stream, of);
  });
}

}  // namespace crossover::cuda
