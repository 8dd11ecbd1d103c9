// SPDX-License-Identifier: Apache-2.0
#include "layer_norm.h"

#include <cmath>

#include "convert.cuh"
#include "site.h"
#include "warp.cuh"

namespace crossover::cuda {
namespace {

/// body(row, lane) for the rows of each warp.
template <class Body>
__device__ void for_rows_of_warp(std::int64_t rows, const Body& body) {
  const int lane = static_cast<int>(threadIdx.x) % warp_threads;
  for (std::int64_t row = thread_index() / warp_threads; row < rows;
       row += thread_count() / warp_threads) {
    body(row, lane);
  }
}

template <class T>
__global__ void layer_norm_kernel(LayerNormArguments<Called> of) {
  for_rows_of_warp(of.rows, [&](std::int64_t row, int lane) {
    const T* x = static_cast<const T*>(of.x) + row * of.width;
    T* y = static_cast<T*>(of.y) + row * of.width;
    const bool centred = of.mean != nullptr;
    float sum = 0;
    for (std::int64_t i = lane; centred && i < of.width; i += warp_threads) {
      sum += widen(x[i]);
    }
    const float mean = group_sum(sum) / static_cast<float>(of.width);
    float squares = 0;
    for (std::int64_t i = lane; i < of.width; i += warp_threads) {
      const float apart = widen(x[i]) - mean;
      squares += apart * apart;
    }
    const float variance = group_sum(squares) / static_cast<float>(of.width);
    const float inverse = 1 / std::sqrt(variance + of.epsilon);
    for (std::int64_t i = lane; i < of.width; i += warp_threads) {
      const float weight = of.weight != nullptr ? of.weight[i] : 1.0F;
      const float bias = of.bias != nullptr ? of.bias[i] : 0.0F;
      y[i] = narrow<T>(weight * ((widen(x[i]) - mean) * inverse) + bias);
    }
    if (lane == 0) {
      if (centred) {
        of.mean[row] = mean;
      }
      of.inverse_deviation[row] = inverse;
    }
  });
}

template <class T>
__global__ void layer_norm_grad_kernel(LayerNormGradArguments<Called> of) {
  for_rows_of_warp(of.rows, [&](std::int64_t row, int lane) {
    const T* x = static_cast<const T*>(of.x) + row * of.width;
    const T* dy = static_cast<const T*>(of.dy) + row * of.width;
    T* dx = static_cast<T*>(of.dx) + row * of.width;
    const bool centred = of.mean != nullptr;
    const float mean = centred ? of.mean[row] : 0.0F;
    const float inverse = of.inverse_deviation[row];
    const auto weight = [&](std::int64_t i) { return of.weight != nullptr ? of.weight[i] : 1.0F; };
    float sum = 0;
    float products = 0;
    for (std::int64_t i = lane; i < of.width; i += warp_threads) {
      const float dz = widen(dy[i]) * weight(i);
      sum += dz;
      products += dz * ((widen(x[i]) - mean) * inverse);
    }
    sum = centred ? group_sum(sum) / static_cast<float>(of.width) : 0.0F;
    products = group_sum(products) / static_cast<float>(of.width);
    for (std::int64_t i = lane; i < of.width; i += warp_threads) {
      const float normal = (widen(x[i]) - mean) * inverse;
      dx[i] = narrow<T>(inverse * (widen(dy[i]) * weight(i) - sum - normal * products));
    }
  });
}

/// A block takes 32 columns and a part of the rows, of which each warp takes every eighth.
template <class T>
__global__ void layer_norm_grad_sums_kernel(LayerNormGradSumsArguments<Called> of, unsigned tiles,
                                            std::int64_t rows_of_a_part) {
  __shared__ float of_products[block_warps * warp_threads];
  __shared__ float of_sums[block_warps * warp_threads];
  const int lane = static_cast<int>(threadIdx.x) % warp_threads;
  const int warp = static_cast<int>(threadIdx.x) / warp_threads;
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x % tiles) * warp_threads + lane;
  const std::int64_t part = blockIdx.x / tiles;
  const std::int64_t next = (part + 1) * rows_of_a_part;
  const std::int64_t end = next < of.rows ? next : of.rows;
  float products = 0;
  float sum = 0;
  if (column < of.width) {
    const T* x = of.x;
    const T* dy = of.dy;
    for (std::int64_t row = part * rows_of_a_part + warp; row < end; row += block_warps) {
      const float gradient = widen(dy[row * of.width + column]);
      const float mean = of.mean != nullptr ? of.mean[row] : 0.0F;
      const float apart = widen(x[row * of.width + column]) - mean;
      products += gradient * (apart * of.inverse_deviation[row]);
      sum += gradient;
    }
  }
  of_products[threadIdx.x] = products;
  of_sums[threadIdx.x] = sum;
  __syncthreads();
  if (warp == 0 && column < of.width) {
    for (int w = 1; w < block_warps; ++w) {
      products += of_products[w * warp_threads + lane];
      sum += of_sums[w * warp_threads + lane];
    }
    of.products[part * of.width + column] = products;
    if (of.sums != nullptr) {
      of.sums[part * of.width + column] = sum;
    }
  }
}

}  // namespace

void call(const LayerNormArguments<Called>& of, const Site& site) {
  with_float(of.x.type, [&](auto zero) {
    launch(layer_norm_kernel<decltype(zero)>, grid_for(of.rows * warp_threads), site.stream, of);
  });
}

void call(const LayerNormGradArguments<Called>& of, const Site& site) {
  with_float(of.x.type, [&](auto zero) {
    launch(layer_norm_grad_kernel<decltype(zero)>, grid_for(of.rows * warp_threads), site.stream,
           of);
  });
}

void call(const LayerNormGradSumsArguments<Called>& of, const Site& site) {
  const auto tiles = static_cast<unsigned>((of.width + warp_threads - 1) / warp_threads);
  const Grid grid{tiles * static_cast<unsigned>(of.parts), block_threads};
  with_float(of.x.type, [&](auto zero) {
    launch(layer_norm_grad_sums_kernel<decltype(zero)>, grid, site.stream, of, tiles,
           (of.rows + of.parts - 1) / of.parts);
  });
}

}  // namespace crossover::cuda
