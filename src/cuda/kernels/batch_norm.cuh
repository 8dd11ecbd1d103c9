// SPDX-License-Identifier: Apache-2.0
// What the kernels of batch normalization share: how rows and channels are shared out, and sums.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <type_traits>
#include <utility>

#include "batch_norm.h"
#include "site.h"
#include "vectors.cuh"

namespace crossover::cuda {

/// A block takes a tile of channels and a part of the rows: a thread n neighbouring channels, some
/// rows apart. Tiles are as narrow as the channels, so that no thread is idle where they are few,
/// and a warp still reads neighbours.
struct Tiles {
  int lanes;  ///< threads across: a power of two
  int tiles;
  std::int64_t parts;  ///< of the rows
};

inline Tiles tiles_for(std::int64_t channels, int n, std::int64_t parts) {
  const std::int64_t across = (channels + n - 1) / n;
  int lanes = 1;
  while (lanes < warp_threads && lanes < across) {
    lanes *= 2;
  }
  return {lanes, static_cast<int>((across + lanes - 1) / lanes), parts};
}

/// For the pass that writes: enough blocks for any GPU, enough rows for each.
inline Tiles tiles_that_write(std::int64_t rows, std::int64_t channels, int n) {
  constexpr std::int64_t rows_of_a_thread = 8;
  constexpr std::int64_t most_blocks = 2048;
  Tiles tiles = tiles_for(channels, n, 1);
  const std::int64_t rows_of_a_block = rows_of_a_thread * block_threads / tiles.lanes;
  tiles.parts = std::clamp<std::int64_t>((rows + rows_of_a_block - 1) / rows_of_a_block, 1,
                                         std::max<std::int64_t>(most_blocks / tiles.tiles, 1));
  return tiles;
}

/// What a thread of a block has to do.
struct Share {
  std::int64_t channel;     ///< the first; may lie behind the last one
  int lanes, lane;          ///< of the tile
  int turn, turns;          ///< this thread's among those of its channels
  std::int64_t part;        ///< of the rows
  std::int64_t begin, end;  ///< rows of that part
};

inline __device__ std::int64_t part_begin(std::int64_t part, std::int64_t parts,
                                          std::int64_t rows) {
  const std::int64_t each = (rows + parts - 1) / parts;
  return part * each < rows ? part * each : rows;
}

template <int n>
__device__ Share share_of(const Tiles& tiles, std::int64_t rows) {
  const int thread = static_cast<int>(threadIdx.x);
  Share share{};
  share.lanes = tiles.lanes;
  share.lane = thread % tiles.lanes;
  share.turn = thread / tiles.lanes;
  share.turns = block_threads / tiles.lanes;
  share.channel =
      (static_cast<std::int64_t>(blockIdx.x % static_cast<unsigned>(tiles.tiles)) * tiles.lanes +
       share.lane) *
      n;
  share.part = blockIdx.x / static_cast<unsigned>(tiles.tiles);
  share.begin = part_begin(share.part, tiles.parts, rows);
  share.end = part_begin(share.part + 1, tiles.parts, rows);
  return share;
}

/// body(m, row) for the thread's rows of its part: m of them at once, a constant of a type, from
/// `row` on, each share.turns behind the last.
template <int at_once, class Body>
__device__ void for_rows(const Share& share, const Body& body) {
  std::int64_t row = share.begin + share.turn;
  for (; row + (at_once - 1) * share.turns < share.end; row += at_once * share.turns) {
    body(std::integral_constant<int, at_once>{}, row);
  }
  for (; row < share.end; row += share.turns) {
    body(std::integral_constant<int, 1>{}, row);
  }
}

template <class Body, int... k>
__device__ void for_each_of(std::integer_sequence<int, k...> /*rows*/, const Body& body) {
  (body(k), ...);
}

/// body(0), ... body(m - 1) without a loop, which the compiler may leave as one: rows must be known
/// to it to stay in registers.
template <int m, class Body>
__device__ void for_each_of(const Body& body) {
  for_each_of(std::make_integer_sequence<int, m>{}, body);
}

/// The thread's channels of m rows.
template <int m, int n>
struct Patch {
  Neighbours<float, n> row[m];
};

/// All loads before anything is made of one, so that they are under way together.
template <int m, int n, class T>
__device__ Patch<m, n> load_patch(const T* first, std::int64_t apart) {
  Patch<m, n> patch;
  for (int k = 0; k < m; ++k) {
    patch.row[k] = load<n>(first + k * apart);
  }
  return patch;
}

/// Two sums for each of a thread's channels.
template <int n>
struct Sums {
  float first[n] = {};
  float second[n] = {};
};

/// Over all threads of a channel, in a fixed order; the first of them has it.
template <int n>
__device__ void sum_by_block(Sums<n>& own, const Share& share) {
  __shared__ float all[2 * n][block_threads];
  const int thread = static_cast<int>(threadIdx.x);
  for (int c = 0; c < n; ++c) {
    all[c][thread] = own.first[c];
    all[n + c][thread] = own.second[c];
  }
  for (int half = share.turns / 2; half > 0; half /= 2) {
    __syncthreads();
    if (share.turn < half) {
      for (int i = 0; i < 2 * n; ++i) {
        all[i][thread] += all[i][thread + half * share.lanes];
      }
    }
  }
  for (int c = 0; c < n; ++c) {
    own.first[c] = all[c][thread];
    own.second[c] = all[n + c][thread];
  }
}

template <int n>
__device__ void store_partial(const ChannelSums<Called>& sums, const Sums<n>& own,
                              const Share& share) {
  float* partial = sums.partial + share.part * 2 * sums.channels + share.channel;
  for (int c = 0; c < n; ++c) {
    partial[c] = own.first[c];
    partial[sums.channels + c] = own.second[c];
  }
}

/// work(T, n) for the type, and for as many channels of it as a load of 16 bytes takes, or for 1.
template <class Work>
void with_channels(Type type, std::int64_t channels, std::initializer_list<const void*> arrays,
                   const Work& work) {
  with_float(type, [&](auto zero) {
    constexpr int widest = neighbours<decltype(zero)>;
    with_neighbours<widest>(channels % widest == 0 && are_aligned(arrays),
                            [&](auto some) { work(zero, some); });
  });
}

template <class Arguments>
void launch_on(const Tiles& tiles, void (*kernel)(Arguments, Tiles), const Arguments& of,
               const Site& site) {
  const Grid grid{static_cast<unsigned>(tiles.tiles * tiles.parts), block_threads};
  launch(kernel, grid, site.stream, of, tiles);
}

}  // namespace crossover::cuda
