// SPDX-License-Identifier: Apache-2.0
#include "batch_norm.h"

#include <algorithm>
#include <cmath>

#include "convert.cuh"
#include "grid.cuh"
#include "site.h"

namespace crossover::cuda {
namespace {

/// A block takes a tile of neighbouring channels and a part of the rows. Tiles are as narrow as the
/// channels, so that no thread is idle where they are few, and a warp still reads neighbours.
struct Tiles {
  int channels;  ///< of a tile: a power of two
  int tiles;
  std::int64_t parts;  ///< of the rows
};

Tiles tiles_for(std::int64_t channels, std::int64_t parts) {
  int tile = 1;
  while (tile < warp_threads && tile < channels) {
    tile *= 2;
  }
  return {tile, static_cast<int>((channels + tile - 1) / tile), parts};
}

Grid grid_of(const Tiles& tiles) {
  return {static_cast<unsigned>(tiles.tiles * tiles.parts), block_threads};
}

/// For the pass that writes: enough blocks for any GPU, enough rows for each.
std::int64_t parts_that_write(std::int64_t rows, std::int64_t channels) {
  constexpr std::int64_t elements_of_a_thread = 8;
  constexpr std::int64_t most_blocks = 2048;
  const Tiles tiles = tiles_for(channels, 1);
  const std::int64_t rows_of_a_block = elements_of_a_thread * block_threads / tiles.channels;
  return std::clamp<std::int64_t>((rows + rows_of_a_block - 1) / rows_of_a_block, 1,
                                  std::max<std::int64_t>(most_blocks / tiles.tiles, 1));
}

/// What a thread of a block has to do.
struct Share {
  std::int64_t channel;     ///< may lie behind the last one
  int lane;                 ///< of the tile
  int turn, turns;          ///< this thread's among those of its channel
  std::int64_t part;        ///< of the rows
  std::int64_t begin, end;  ///< rows of that part
};

__device__ std::int64_t part_begin(std::int64_t part, std::int64_t parts, std::int64_t rows) {
  const std::int64_t each = (rows + parts - 1) / parts;
  return part * each < rows ? part * each : rows;
}

__device__ Share share_of(const Tiles& tiles, std::int64_t rows) {
  const int thread = static_cast<int>(threadIdx.x);
  Share share{};
  share.lane = thread % tiles.channels;
  share.turn = thread / tiles.channels;
  share.turns = block_threads / tiles.channels;
  share.channel =
      static_cast<std::int64_t>(blockIdx.x % static_cast<unsigned>(tiles.tiles)) * tiles.channels +
      share.lane;
  share.part = blockIdx.x / static_cast<unsigned>(tiles.tiles);
  share.begin = part_begin(share.part, tiles.parts, rows);
  share.end = part_begin(share.part + 1, tiles.parts, rows);
  return share;
}

/// Of `count` numbers: their mean, and the sum of their squared distances to it.
struct Moments {
  float count, mean, squares;
};

__device__ Moments joined(const Moments& a, const Moments& b) {
  const float count = a.count + b.count;
  if (b.count == 0) {
    return a;
  }
  const float apart = b.mean - a.mean;
  const float share = b.count / count;
  return {count, a.mean + apart * share, a.squares + b.squares + apart * apart * a.count * share};
}

/// Of all threads of a channel; the first has it.
__device__ Moments joined_by_block(const Moments& own, const Share& share) {
  __shared__ Moments all[block_threads];
  const int width = block_threads / share.turns;
  const int thread = static_cast<int>(threadIdx.x);
  all[thread] = own;
  for (int half = share.turns / 2; half > 0; half /= 2) {
    __syncthreads();
    if (share.turn < half) {
      all[thread] = joined(all[thread], all[thread + half * width]);
    }
  }
  __syncthreads();
  return all[share.lane];
}

struct Pair {
  float first, second;
};

/// Sums over all threads of a channel, which all of them get.
__device__ Pair summed_by_block(const Pair& own, const Share& share) {
  __shared__ Pair all[block_threads];
  const int width = block_threads / share.turns;
  const int thread = static_cast<int>(threadIdx.x);
  all[thread] = own;
  for (int half = share.turns / 2; half > 0; half /= 2) {
    __syncthreads();
    if (share.turn < half) {
      all[thread].first += all[thread + half * width].first;
      all[thread].second += all[thread + half * width].second;
    }
  }
  __syncthreads();
  return all[share.lane];
}

template <class T>
__global__ void statistics_kernel(BatchNormStatisticsArguments<Called> of, Tiles tiles) {
  const Share share = share_of(tiles, of.sums.rows);
  const T* x = of.x;
  Moments own{0, 0, 0};
  if (share.channel < of.sums.channels) {
    for (std::int64_t row = share.begin + share.turn; row < share.end; row += share.turns) {
      const float value = widen(x[row * of.sums.channels + share.channel]);
      const float before = value - own.mean;
      own.count += 1;
      own.mean += before / own.count;
      own.squares += before * (value - own.mean);
    }
  }
  const Moments all = joined_by_block(own, share);
  if (share.turn == 0 && share.channel < of.sums.channels) {
    float* partial = of.sums.partial + share.part * 2 * of.sums.channels + share.channel;
    partial[0] = all.mean;
    partial[of.sums.channels] = all.squares;
  }
}

template <class T>
__global__ void normalize_kernel(BatchNormArguments<Called> of, Tiles tiles) {
  const Share share = share_of(tiles, of.sums.rows);
  const bool is_channel = share.channel < of.sums.channels;
  Moments own{0, 0, 0};
  if (is_channel) {
    for (std::int64_t chunk = share.turn; chunk < of.sums.chunks; chunk += share.turns) {
      const float* partial = of.sums.partial + chunk * 2 * of.sums.channels + share.channel;
      const std::int64_t rows = part_begin(chunk + 1, of.sums.chunks, of.sums.rows) -
                                part_begin(chunk, of.sums.chunks, of.sums.rows);
      own = joined(own, {static_cast<float>(rows), partial[0], partial[of.sums.channels]});
    }
  }
  const Moments all = joined_by_block(own, share);
  if (!is_channel) {
    return;
  }
  const float inverse_deviation =
      1 / std::sqrt(all.squares / static_cast<float>(of.sums.rows) + of.epsilon);
  if (share.part == 0 && share.turn == 0) {
    of.mean[share.channel] = all.mean;
    of.inverse_deviation[share.channel] = inverse_deviation;
  }
  const float factor = of.scale[share.channel] * inverse_deviation;
  const float shift = of.shift[share.channel];
  const T* x = of.x;
  const T* addend = of.addend;
  T* y = of.y;
  for (std::int64_t row = share.begin + share.turn; row < share.end; row += share.turns) {
    const std::int64_t i = row * of.sums.channels + share.channel;
    float value = (widen(x[i]) - all.mean) * factor + shift;
    if (addend != nullptr) {
      value += widen(addend[i]);
    }
    y[i] = narrow<T>(crossover::activate(of.activation, value));
  }
}

/// The gradient behind the activation.
template <class T>
__device__ float dz_at(const BatchNormGradSumsArguments<Called>& of, std::int64_t i) {
  float dz = widen(static_cast<const T*>(of.dy.at)[i]);
  if (of.dy_more.at != nullptr) {
    dz += widen(static_cast<const T*>(of.dy_more.at)[i]);
  }
  if (of.activation != Activation::identity) {
    dz *= derivative_from_result(of.activation, widen(static_cast<const T*>(of.y.at)[i]));
  }
  return dz;
}

template <class T>
__global__ void grad_sums_kernel(BatchNormGradSumsArguments<Called> of, Tiles tiles) {
  const Share share = share_of(tiles, of.sums.rows);
  const bool is_channel = share.channel < of.sums.channels;
  const T* x = of.x;
  Pair own{0, 0};
  if (is_channel) {
    const float mean = of.mean[share.channel];
    const float inverse_deviation = of.inverse_deviation[share.channel];
    for (std::int64_t row = share.begin + share.turn; row < share.end; row += share.turns) {
      const std::int64_t i = row * of.sums.channels + share.channel;
      const float dz = dz_at<T>(of, i);
      own.first += dz;
      own.second += dz * ((widen(x[i]) - mean) * inverse_deviation);
    }
  }
  const Pair all = summed_by_block(own, share);
  if (share.turn == 0 && is_channel) {
    float* partial = of.sums.partial + share.part * 2 * of.sums.channels + share.channel;
    partial[0] = all.first;
    partial[of.sums.channels] = all.second;
  }
}

template <class T>
__global__ void grad_kernel(BatchNormGradArguments<Called> to, Tiles tiles) {
  const BatchNormGradSumsArguments<Called>& of = to.of;
  const Share share = share_of(tiles, of.sums.rows);
  const bool is_channel = share.channel < of.sums.channels;
  Pair own{0, 0};
  if (is_channel) {
    for (std::int64_t chunk = share.turn; chunk < of.sums.chunks; chunk += share.turns) {
      const float* partial = of.sums.partial + chunk * 2 * of.sums.channels + share.channel;
      own.first += partial[0];
      own.second += partial[of.sums.channels];
    }
  }
  const Pair all = summed_by_block(own, share);
  if (!is_channel) {
    return;
  }
  if (share.part == 0 && share.turn == 0) {
    to.dshift[share.channel] = all.first;
    to.dscale[share.channel] = all.second;
  }
  const float mean = of.mean[share.channel];
  const float inverse_deviation = of.inverse_deviation[share.channel];
  const float factor = to.scale[share.channel] * inverse_deviation;
  const float mean_dz = all.first / static_cast<float>(of.sums.rows);
  const float mean_product = all.second / static_cast<float>(of.sums.rows);
  const T* x = of.x;
  T* dx = to.dx;
  T* daddend = to.daddend;
  for (std::int64_t row = share.begin + share.turn; row < share.end; row += share.turns) {
    const std::int64_t i = row * of.sums.channels + share.channel;
    const float dz = dz_at<T>(of, i);
    const float normalized = (widen(x[i]) - mean) * inverse_deviation;
    dx[i] = narrow<T>(factor * (dz - (mean_dz + normalized * mean_product)));
    if (daddend != nullptr) {
      daddend[i] = narrow<T>(dz);
    }
  }
}

Tiles tiles_for(const ChannelSums<Called>& sums) { return tiles_for(sums.channels, sums.chunks); }

Tiles tiles_that_write(const ChannelSums<Called>& sums) {
  return tiles_for(sums.channels, parts_that_write(sums.rows, sums.channels));
}

template <class Arguments>
void launch_on(const Tiles& tiles, void (*kernel)(Arguments, Tiles), const Arguments& of,
               const Site& site) {
  launch(kernel, grid_of(tiles), site.stream, of, tiles);
}

}  // namespace

void call(const BatchNormStatisticsArguments<Called>& of, const Site& site) {
  with_float(of.x.type, [&](auto zero) {
    launch_on(tiles_for(of.sums), statistics_kernel<decltype(zero)>, of, site);
  });
}

void call(const BatchNormArguments<Called>& of, const Site& site) {
  with_float(of.x.type, [&](auto zero) {
    launch_on(tiles_that_write(of.sums), normalize_kernel<decltype(zero)>, of, site);
  });
}

void call(const BatchNormGradSumsArguments<Called>& of, const Site& site) {
  with_float(of.x.type, [&](auto zero) {
    launch_on(tiles_for(of.sums), grad_sums_kernel<decltype(zero)>, of, site);
  });
}

void call(const BatchNormGradArguments<Called>& to, const Site& site) {
  with_float(to.of.x.type, [&](auto zero) {
    launch_on(tiles_that_write(to.of.sums), grad_kernel<decltype(zero)>, to, site);
  });
}

}  // namespace crossover::cuda
