// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "batch_norm.cuh"

namespace crossover::cuda {
namespace {

template <class T, int n>
__global__ void statistics_kernel(BatchNormStatisticsArguments<Called> of, Tiles tiles) {
  constexpr int at_once = 4;
  const Share share = share_of<n>(tiles, of.sums.rows);
  const std::int64_t channels = of.sums.channels;
  const bool has_rows = share.channel < channels && share.begin < share.end;
  const T* x = static_cast<const T*>(of.x.at) + share.channel;
  Neighbours<float, n> origin{};
  Sums<n> own;
  if (has_rows) {
    origin = load<n>(x + share.begin * channels);
    for_rows<at_once>(share, [&](auto some, std::int64_t row) {
      constexpr int m = decltype(some)::value;
      const auto values = load_patch<m, n>(x + row * channels, share.turns * channels);
      for (int k = 0; k < m; ++k) {
        for (int c = 0; c < n; ++c) {
          const float apart = values.row[k].at[c] - origin.at[c];
          own.first[c] += apart;
          own.second[c] += apart * apart;
        }
      }
    });
  }
  sum_by_block(own, share);
  if (share.turn == 0 && has_rows) {
    const auto count = static_cast<float>(share.end - share.begin);
    for (int c = 0; c < n; ++c) {
      const float apart = own.first[c] / count;
      own.second[c] = fmaxf(own.second[c] - own.first[c] * apart, 0);
      own.first[c] = origin.at[c] + apart;
    }
    store_partial(of.sums, own, share);
  }
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
  const int thread = static_cast<int>(threadIdx.x);
  all[thread] = own;
  for (int half = share.turns / 2; half > 0; half /= 2) {
    __syncthreads();
    if (share.turn < half) {
      all[thread] = joined(all[thread], all[thread + half * share.lanes]);
    }
  }
  return all[thread];
}

__global__ void moments_kernel(BatchNormMomentsArguments<Called> of, Tiles tiles) {
  const Share share = share_of<1>(tiles, 0);
  const ChannelSums<Called>& sums = of.sums;
  Moments own{0, 0, 0};
  if (share.channel < sums.channels) {
    for (std::int64_t chunk = share.turn; chunk < sums.chunks; chunk += share.turns) {
      const float* partial = sums.partial + chunk * 2 * sums.channels + share.channel;
      const std::int64_t rows =
          part_begin(chunk + 1, sums.chunks, sums.rows) - part_begin(chunk, sums.chunks, sums.rows);
      if (rows > 0) {
        own = joined(own, {static_cast<float>(rows), partial[0], partial[sums.channels]});
      }
    }
  }
  const Moments all = joined_by_block(own, share);
  if (share.turn == 0 && share.channel < sums.channels) {
    of.mean[share.channel] = all.mean;
    of.inverse_deviation[share.channel] =
        1 / std::sqrt(all.squares / static_cast<float>(sums.rows) + of.epsilon);
  }
}

template <int n>
__device__ void activate_all(Activation activation, Neighbours<float, n>& values) {
  if (activation != Activation::identity) {
    for (int c = 0; c < n; ++c) {
      values.at[c] = crossover::activate(activation, values.at[c]);
    }
  }
}

template <class T, int n>
__global__ void normalize_kernel(BatchNormArguments<Called> of, Tiles tiles) {
  constexpr int at_once = 4;
  const Share share = share_of<n>(tiles, of.rows);
  if (share.channel >= of.channels) {
    return;
  }
  const auto mean = load<n>(of.mean + share.channel);
  const auto inverse_deviation = load<n>(of.inverse_deviation + share.channel);
  auto factor = load<n>(of.scale + share.channel);
  const auto shift = load<n>(of.shift + share.channel);
  for (int c = 0; c < n; ++c) {
    factor.at[c] *= inverse_deviation.at[c];
  }
  const T* x = of.x;
  const T* addend = of.addend;
  T* y = of.y;
  const std::int64_t apart = share.turns * of.channels;
  for_rows<at_once>(share, [&](auto some, std::int64_t row) {
    constexpr int m = decltype(some)::value;
    const std::int64_t i = row * of.channels + share.channel;
    auto values = load_patch<m, n>(x + i, apart);
    Patch<m, n> added{};
    if (addend != nullptr) {
      added = load_patch<m, n>(addend + i, apart);
    }
    for_each_of<m>([&](int k) {
      Neighbours<float, n>& row = values.row[k];
      for (int c = 0; c < n; ++c) {
        row.at[c] = (row.at[c] - mean.at[c]) * factor.at[c] + shift.at[c] + added.row[k].at[c];
      }
      activate_all(of.activation, row);
      store(row, y + i + k * apart);
    });
  });
}

}  // namespace

void call(const BatchNormStatisticsArguments<Called>& of, const Site& site) {
  with_channels(of.x.type, of.sums.channels, {of.x}, [&](auto zero, auto some) {
    constexpr int n = decltype(some)::value;
    launch_on(tiles_for(of.sums.channels, n, of.sums.chunks), statistics_kernel<decltype(zero), n>,
              of, site);
  });
}

void call(const BatchNormMomentsArguments<Called>& of, const Site& site) {
  launch_on(tiles_for(of.sums.channels, 1, 1), moments_kernel, of, site);
}

void call(const BatchNormArguments<Called>& of, const Site& site) {
  with_channels(of.x.type, of.channels,
                {of.x, of.addend, of.y, of.scale, of.shift, of.mean, of.inverse_deviation},
                [&](auto zero, auto some) {
                  constexpr int n = decltype(some)::value;
                  launch_on(tiles_that_write(of.rows, of.channels, n),
                            normalize_kernel<decltype(zero), n>, of, site);
                });
}

}  // namespace crossover::cuda
