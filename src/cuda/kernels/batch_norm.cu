// SPDX-License-Identifier: Apache-2.0
#include "batch_norm.cuh"

#include <cmath>

namespace crossover::cuda {

// ---- Forward

namespace {

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

/// Of a block's rows, from each thread's sums of what its `count` numbers are apart from its
/// origin: the first row of a channels-last part, the thread's first number of a plain one. There a
/// block is all that sums a part, of more numbers; joined thread by thread, its rounding errors
/// average.
template <class W>
__device__ Sums<W::channels> moments_of_block(const Sums<W::n>& sums,
                                              const Neighbours<float, W::n>& origin, float count,
                                              const Share& share) {
  auto own = sums_of_channels<W>(sums);
  if constexpr (!W::plain) {
    sum_by_block(own, share);
    count = static_cast<float>(share.end - share.begin);
  }
  for (int c = 0; c < W::channels; ++c) {
    const float apart = count > 0 ? own.first[c] / count : 0.0F;
    own.second[c] = fmaxf(own.second[c] - own.first[c] * apart, 0);
    own.first[c] = origin.at[c] + apart;
  }
  if constexpr (W::plain) {
    const Moments all = joined_by_block({count, own.first[0], own.second[0]}, share);
    own.first[0] = all.mean;
    own.second[0] = all.squares;
  }
  return own;
}

template <class W>
__global__ void statistics_kernel(BatchNormStatisticsArguments<Called> of, Tiles tiles) {
  constexpr int at_once = 4;
  const ChannelView& images = of.sums.images;
  const Share share = share_of<W>(tiles, images.rows());
  const bool is_channel = share.channel < images.channels;
  const std::int64_t first = share.begin + (W::plain ? share.turn * W::rows : 0);
  const typename W::T* x = of.x;
  Neighbours<float, W::n> origin{};
  Sums<W::n> sums;
  int loads = 0;
  if (is_channel && first < share.end) {
    origin = load_channels<W>(x + place_of<W>(images, share, first));
    for_places<W, at_once>(images, share, [&](auto some, const auto& places) {
      constexpr int m = decltype(some)::value;
      const auto values = load_patch<W>(x, places);
      for (int k = 0; k < m; ++k) {
        for (int c = 0; c < W::n; ++c) {
          const float apart = values.row[k].at[c] - origin.at[c];
          sums.first[c] += apart;
          sums.second[c] += apart * apart;
        }
      }
      loads += m;
    });
  }
  const auto own = moments_of_block<W>(sums, origin, static_cast<float>(loads * W::rows), share);
  if (share.turn == 0 && is_channel && share.begin < share.end) {
    store_partial(of.sums, own, share);
  }
}

__global__ void moments_kernel(BatchNormMomentsArguments<Called> of, Tiles tiles) {
  const Share share = share_of<OneByOne>(tiles, 0);
  const ChannelSums<Called>& sums = of.sums;
  const std::int64_t channels = sums.images.channels;
  const std::int64_t all_rows = sums.images.rows();
  Moments own{0, 0, 0};
  if (share.channel < channels) {
    for (std::int64_t chunk = share.turn; chunk < sums.chunks; chunk += share.turns) {
      const float* partial = sums.partial + chunk * 2 * channels + share.channel;
      const std::int64_t rows =
          part_begin(chunk + 1, sums.chunks, all_rows) - part_begin(chunk, sums.chunks, all_rows);
      if (rows > 0) {
        own = joined(own, {static_cast<float>(rows), partial[0], partial[channels]});
      }
    }
  }
  const Moments all = joined_by_block(own, share);
  if (share.turn == 0 && share.channel < channels) {
    of.mean[share.channel] = all.mean;
    of.inverse_deviation[share.channel] =
        1 / std::sqrt(all.squares / static_cast<float>(all_rows) + of.epsilon);
  }
}

template <int n>
__device__ void activate_all(Activation activation, Neighbours<float, n>& values) {
  if (activation != Activation::identity) {  // BatchNorm takes no other than ReLU
    for (int c = 0; c < n; ++c) {
      values.at[c] = crossover::activate(Activation::relu, values.at[c]);
    }
  }
}

template <class W>
__global__ void normalize_kernel(BatchNormArguments<Called> of, Tiles tiles) {
  constexpr int at_once = 4;
  const Share share = share_of<W>(tiles, of.images.rows());
  if (share.channel >= of.images.channels) {
    return;
  }
  const auto mean = load_channels<W>(of.mean + share.channel);
  const auto inverse_deviation = load_channels<W>(of.inverse_deviation + share.channel);
  auto factor = load_channels<W>(of.scale + share.channel);
  const auto shift = load_channels<W>(of.shift + share.channel);
  for (int c = 0; c < W::n; ++c) {
    factor.at[c] *= inverse_deviation.at[c];
  }
  const typename W::T* x = of.x;
  const typename W::T* addend = of.addend;
  typename W::T* y = of.y;
  for_places<W, at_once>(of.images, share, [&](auto some, const auto& places) {
    constexpr int m = decltype(some)::value;
    auto values = load_patch<W>(x, places);
    Patch<m, W::n> added{};
    if (addend != nullptr) {
      added = load_patch<W>(addend, places);
    }
    for_each_of<m>([&](int k) {
      Neighbours<float, W::n>& row = values.row[k];
      for (int c = 0; c < W::n; ++c) {
        row.at[c] = (row.at[c] - mean.at[c]) * factor.at[c] + shift.at[c] + added.row[k].at[c];
      }
      activate_all(of.activation, row);
      store(row, y + places.at[k]);
    });
  });
}

}  // namespace

void call(const BatchNormStatisticsArguments<Called>& of, const Site& site) {
  with_walk(of.x.type, of.sums.images, {of.x}, [&](auto walk) {
    using W = decltype(walk);
    launch_on(tiles_for<W>(of.sums.images.channels, of.sums.chunks), statistics_kernel<W>, of,
              site);
  });
}

void call(const BatchNormMomentsArguments<Called>& of, const Site& site) {
  launch_on(tiles_for<OneByOne>(of.sums.images.channels, 1), moments_kernel, of, site);
}

void call(const BatchNormArguments<Called>& of, const Site& site) {
  with_walk(of.x.type, of.images,
            {of.x, of.addend, of.y, of.scale, of.shift, of.mean, of.inverse_deviation},
            [&](auto walk) {
              using W = decltype(walk);
              launch_on(tiles_that_write<W>(of.images), normalize_kernel<W>, of, site);
            });
}

// ---- Gradients

namespace {

/// x' and the gradient behind the activation, dz.
template <int m, int n>
struct GradPatch {
  Patch<m, n> normalized, dz;
};

/// The channels' mean and inverse deviation.
template <int n>
struct Scaling {
  Neighbours<float, n> mean, inverse_deviation;
};

template <class W>
__device__ Scaling<W::n> load_scaling(const BatchNormGradSumsArguments<Called>& of,
                                      std::int64_t channel) {
  return {load_channels<W>(of.mean + channel), load_channels<W>(of.inverse_deviation + channel)};
}

template <class W, int m, int n = W::n>
__device__ GradPatch<m, n> load_grads(const BatchNormGradSumsArguments<Called>& of,
                                      const Scaling<n>& by, const Places<m>& places) {
  auto x = load_patch<W>(of.x, places);
  auto dz = load_patch<W>(of.dy, places);
  Patch<m, n> more{};
  if (of.dy_more.at != nullptr) {
    more = load_patch<W>(of.dy_more, places);
  }
  Patch<m, n> y{};
  if (of.activation != Activation::identity) {
    y = load_patch<W>(of.y, places);
  }
  for_each_of<m>([&](int k) {
    for (int c = 0; c < n; ++c) {
      x.row[k].at[c] = (x.row[k].at[c] - by.mean.at[c]) * by.inverse_deviation.at[c];
      dz.row[k].at[c] += more.row[k].at[c];
    }
    if (of.activation != Activation::identity) {
      for (int c = 0; c < n; ++c) {
        dz.row[k].at[c] = times_derivative(Activation::relu, dz.row[k].at[c], y.row[k].at[c]);
      }
    }
  });
  return {x, dz};
}

/// Of four arrays.
constexpr int grad_rows_at_once = 2;

template <class W>
__global__ void grad_sums_kernel(BatchNormGradSumsArguments<Called> of, Tiles tiles) {
  const ChannelView& images = of.sums.images;
  const Share share = share_of<W>(tiles, images.rows());
  const bool is_channel = share.channel < images.channels;
  Sums<W::n> sums;
  if (is_channel) {
    const auto by = load_scaling<W>(of, share.channel);
    for_places<W, grad_rows_at_once>(images, share, [&](auto some, const auto& places) {
      constexpr int m = decltype(some)::value;
      const auto grads = load_grads<W>(of, by, places);
      for (int k = 0; k < m; ++k) {
        for (int c = 0; c < W::n; ++c) {
          const float dz = grads.dz.row[k].at[c];
          sums.first[c] += dz;
          sums.second[c] += dz * grads.normalized.row[k].at[c];
        }
      }
    });
  }
  auto own = sums_of_channels<W>(sums);
  sum_by_block(own, share);
  if (share.turn == 0 && is_channel) {
    store_partial(of.sums, own, share);
  }
}

__global__ void grad_totals_kernel(BatchNormGradTotalsArguments<Called> of, Tiles tiles) {
  const Share share = share_of<OneByOne>(tiles, 0);
  const ChannelSums<Called>& sums = of.sums;
  const std::int64_t channels = sums.images.channels;
  Sums<1> own;
  if (share.channel < channels) {
    for (std::int64_t chunk = share.turn; chunk < sums.chunks; chunk += share.turns) {
      const float* partial = sums.partial + chunk * 2 * channels + share.channel;
      own.first[0] += partial[0];
      own.second[0] += partial[channels];
    }
  }
  sum_by_block(own, share);
  if (share.turn == 0 && share.channel < channels) {
    of.dshift[share.channel] = own.first[0];
    of.dscale[share.channel] = own.second[0];
  }
}

template <class W>
__global__ void grad_kernel(BatchNormGradArguments<Called> to, Tiles tiles) {
  const BatchNormGradSumsArguments<Called>& of = to.of;
  const ChannelView& images = of.sums.images;
  const Share share = share_of<W>(tiles, images.rows());
  if (share.channel >= images.channels) {
    return;
  }
  const auto by = load_scaling<W>(of, share.channel);
  auto factor = load_channels<W>(to.scale + share.channel);
  auto mean_dz = load_channels<W>(to.dshift + share.channel);
  auto mean_product = load_channels<W>(to.dscale + share.channel);
  const auto rows = static_cast<float>(images.rows());
  for (int c = 0; c < W::n; ++c) {
    factor.at[c] *= by.inverse_deviation.at[c];
    mean_dz.at[c] /= rows;
    mean_product.at[c] /= rows;
  }
  typename W::T* dx = to.dx;
  typename W::T* daddend = to.daddend;
  for_places<W, grad_rows_at_once>(images, share, [&](auto some, const auto& places) {
    constexpr int m = decltype(some)::value;
    auto grads = load_grads<W>(of, by, places);
    for (int k = 0; k < m; ++k) {
      Neighbours<float, W::n>& values = grads.normalized.row[k];
      const Neighbours<float, W::n>& dz = grads.dz.row[k];
      for (int c = 0; c < W::n; ++c) {
        values.at[c] =
            factor.at[c] * (dz.at[c] - (mean_dz.at[c] + values.at[c] * mean_product.at[c]));
      }
      store(values, dx + places.at[k]);
      if (daddend != nullptr) {
        store(dz, daddend + places.at[k]);
      }
    }
  });
}

}  // namespace

void call(const BatchNormGradSumsArguments<Called>& of, const Site& site) {
  with_walk(of.x.type, of.sums.images,
            {of.x, of.y, of.dy, of.dy_more, of.mean, of.inverse_deviation}, [&](auto walk) {
              using W = decltype(walk);
              launch_on(tiles_for<W>(of.sums.images.channels, of.sums.chunks), grad_sums_kernel<W>,
                        of, site);
            });
}

void call(const BatchNormGradTotalsArguments<Called>& of, const Site& site) {
  launch_on(tiles_for<OneByOne>(of.sums.images.channels, 1), grad_totals_kernel, of, site);
}

void call(const BatchNormGradArguments<Called>& to, const Site& site) {
  const BatchNormGradSumsArguments<Called>& of = to.of;
  with_walk(of.x.type, of.sums.images,
            {of.x, of.y, of.dy, of.dy_more, of.mean, of.inverse_deviation, to.scale, to.dx,
             to.dscale, to.dshift, to.daddend},
            [&](auto walk) {
              using W = decltype(walk);
              launch_on(tiles_that_write<W>(of.sums.images), grad_kernel<W>, to, site);
            });
}

}  // namespace crossover::cuda
