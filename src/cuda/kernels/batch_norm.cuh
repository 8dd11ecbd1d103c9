// SPDX-License-Identifier: Apache-2.0
// What the kernels of batch normalization share: how rows and channels are shared out, and sums.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <type_traits>
#include <utility>

#include "../base/site.h"
#include "../plan/launches/normalization.h"
#include "vectors.cuh"

namespace crossover::cuda {

/// What a thread takes at once: n neighbouring channels of a pixel, or, of images in plain layout,
/// n neighbouring pixels of a channel.
template <class Number, int neighbours_at_once, bool is_plain>
struct Walk {
  using T = Number;
  static constexpr int n = neighbours_at_once;
  static constexpr bool plain = is_plain;
  static constexpr int channels = plain ? 1 : n;
  static constexpr int rows = plain ? n : 1;  ///< of each of these channels
};

/// A block takes a tile of channels and a part of the rows: a thread the channels of its walk, some
/// rows apart. Tiles are as narrow as the channels, so that no thread is idle where they are few,
/// and a warp still reads neighbours.
struct Tiles {
  int lanes;  ///< threads across: a power of two
  int tiles;
  std::int64_t parts;  ///< of the rows
};

template <class W>
Tiles tiles_for(std::int64_t channels, std::int64_t parts) {
  const std::int64_t across = (channels + W::channels - 1) / W::channels;
  int lanes = 1;
  while (!W::plain && lanes < warp_threads && lanes < across) {
    lanes *= 2;
  }
  return {lanes, static_cast<int>((across + lanes - 1) / lanes), parts};
}

/// For the pass that writes: enough blocks for any GPU, enough rows for each.
template <class W>
Tiles tiles_that_write(const ChannelView& images) {
  constexpr std::int64_t loads_of_a_thread = 8;
  constexpr std::int64_t most_blocks = 2048;
  Tiles tiles = tiles_for<W>(images.channels, 1);
  const std::int64_t rows_of_a_block = loads_of_a_thread * W::rows * block_threads / tiles.lanes;
  tiles.parts = std::clamp<std::int64_t>((images.rows() + rows_of_a_block - 1) / rows_of_a_block, 1,
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

/// A multiple of the rows that a thread takes at once, whatever its walk, or all of them.
inline __device__ std::int64_t part_begin(std::int64_t part, std::int64_t parts,
                                          std::int64_t rows) {
  constexpr std::int64_t most = neighbours<float>;
  const std::int64_t each = (rows + parts * most - 1) / (parts * most) * most;
  return part * each < rows ? part * each : rows;
}

template <class W>
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
      W::channels;
  share.part = blockIdx.x / static_cast<unsigned>(tiles.tiles);
  share.begin = part_begin(share.part, tiles.parts, rows);
  share.end = part_begin(share.part + 1, tiles.parts, rows);
  return share;
}

/// Where what the thread takes of its channels begins: with this row.
template <class W>
__device__ std::int64_t place_of(const ChannelView& images, const Share& share, std::int64_t row) {
  if constexpr (W::plain) {  // rows in 32 bits: a GPU divides these several times faster
    const auto pixels = static_cast<unsigned>(images.inner);
    const unsigned image = static_cast<unsigned>(row) / pixels;
    const unsigned pixel = static_cast<unsigned>(row) - image * pixels;
    return (image * images.channels + share.channel) * images.inner + pixel;
  } else {
    return row * images.channels + share.channel;
  }
}

/// Of m loads.
template <int m>
struct Places {
  std::int64_t at[m];
};

/// body(m, places) for the thread's rows of its part: m loads at once, a constant of a type, each
/// share.turns loads behind the last.
template <class W, int at_once, class Body>
__device__ void for_places(const ChannelView& images, const Share& share, const Body& body) {
  const std::int64_t apart = share.turns * W::rows;
  std::int64_t row = share.begin + share.turn * W::rows;
  const auto visit = [&](auto some) {
    constexpr int m = decltype(some)::value;
    Places<m> places;
    for (int k = 0; k < m; ++k) {
      places.at[k] = place_of<W>(images, share, row + k * apart);
    }
    body(some, places);
    row += m * apart;
  };
  while (row + (at_once - 1) * apart < share.end) {
    visit(std::integral_constant<int, at_once>{});
  }
  while (row < share.end) {
    visit(std::integral_constant<int, 1>{});
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

/// What the thread takes in m loads.
template <int m, int n>
struct Patch {
  Neighbours<float, n> row[m];
};

/// All loads before anything is made of one, so that they are under way together.
template <class W, int m>
__device__ Patch<m, W::n> load_patch(const typename W::T* from, const Places<m>& places) {
  Patch<m, W::n> patch;
  for (int k = 0; k < m; ++k) {
    patch.row[k] = load<W::n>(from + places.at[k]);
  }
  return patch;
}

/// The thread's channels of an array of them, or the first number of an image's: for each of the
/// neighbours its own.
template <class W, class T>
__device__ Neighbours<float, W::n> load_channels(const T* from) {
  if constexpr (W::plain) {
    Neighbours<float, W::n> same;
    for (int c = 0; c < W::n; ++c) {
      same.at[c] = widen(*from);
    }
    return same;
  } else {
    return load<W::n>(from);
  }
}

/// Two sums for each of a thread's channels.
template <int n>
struct Sums {
  float first[n] = {};
  float second[n] = {};
};

/// Of the thread's channels, from those of its neighbours.
template <class W>
__device__ Sums<W::channels> sums_of_channels(const Sums<W::n>& of) {
  Sums<W::channels> sums;
  for (int c = 0; c < W::n; ++c) {
    sums.first[c % W::channels] += of.first[c];
    sums.second[c % W::channels] += of.second[c];
  }
  return sums;
}

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
  const std::int64_t channels = sums.images.channels;
  float* partial = sums.partial + share.part * 2 * channels + share.channel;
  for (int c = 0; c < n; ++c) {
    partial[c] = own.first[c];
    partial[channels + c] = own.second[c];
  }
}

/// Of moments and totals.
using OneByOne = Walk<float, 1, false>;

/// work(the Walk): with as many neighbours as a load of 16 bytes takes, or with 1.
template <class Work>
void with_walk(Type type, const ChannelView& images, std::initializer_list<const void*> arrays,
               const Work& work) {
  const bool aligned = are_aligned(arrays);
  if (images.inner > 1) {
    constexpr int widest = neighbours<float>;
    with_neighbours<widest>(images.inner % widest == 0 && aligned,
                            [&](auto some) { work(Walk<float, decltype(some)::value, true>{}); });
    return;
  }
  with_float(type, [&](auto zero) {
    using T = decltype(zero);
    with_neighbours<neighbours<T>>(images.channels % neighbours<T> == 0 && aligned, [&](auto some) {
      work(Walk<T, decltype(some)::value, false>{});
    });
  });
}

template <class Arguments>
void launch_on(const Tiles& tiles, void (*kernel)(Arguments, Tiles), const Arguments& of,
               const Site& site) {
  const Grid grid{static_cast<unsigned>(tiles.tiles * tiles.parts), block_threads};
  launch(kernel, grid, site.stream, of, tiles);
}

}  // namespace crossover::cuda
