// SPDX-License-Identifier: Apache-2.0
#include "batch_norm.cuh"

namespace crossover::cuda {
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

template <class T, int m, int n>
__device__ GradPatch<m, n> load_grads(const BatchNormGradSumsArguments<Called>& of,
                                      const Scaling<n>& by, std::int64_t i, std::int64_t apart) {
  auto x = load_patch<m, n>(static_cast<const T*>(of.x.at) + i, apart);
  auto dz = load_patch<m, n>(static_cast<const T*>(of.dy.at) + i, apart);
  Patch<m, n> more{};
  if (of.dy_more.at != nullptr) {
    more = load_patch<m, n>(static_cast<const T*>(of.dy_more.at) + i, apart);
  }
  Patch<m, n> y{};
  if (of.activation != Activation::identity) {
    y = load_patch<m, n>(static_cast<const T*>(of.y.at) + i, apart);
  }
  for_each_of<m>([&](int k) {
    for (int c = 0; c < n; ++c) {
      x.row[k].at[c] = (x.row[k].at[c] - by.mean.at[c]) * by.inverse_deviation.at[c];
      dz.row[k].at[c] += more.row[k].at[c];
    }
    if (of.activation != Activation::identity) {
      for (int c = 0; c < n; ++c) {
        dz.row[k].at[c] *= derivative_from_result(of.activation, y.row[k].at[c]);
      }
    }
  });
  return {x, dz};
}

/// Of four arrays.
constexpr int grad_rows_at_once = 2;

template <class T, int n>
__global__ void grad_sums_kernel(BatchNormGradSumsArguments<Called> of, Tiles tiles) {
  const Share share = share_of<n>(tiles, of.sums.rows);
  const bool is_channel = share.channel < of.sums.channels;
  Sums<n> own;
  if (is_channel) {
    const Scaling<n> by{load<n>(of.mean + share.channel),
                        load<n>(of.inverse_deviation + share.channel)};
    for_rows<grad_rows_at_once>(share, [&](auto some, std::int64_t row) {
      constexpr int m = decltype(some)::value;
      const auto grads = load_grads<T, m, n>(of, by, row * of.sums.channels + share.channel,
                                             share.turns * of.sums.channels);
      for (int k = 0; k < m; ++k) {
        for (int c = 0; c < n; ++c) {
          const float dz = grads.dz.row[k].at[c];
          own.first[c] += dz;
          own.second[c] += dz * grads.normalized.row[k].at[c];
        }
      }
    });
  }
  sum_by_block(own, share);
  if (share.turn == 0 && is_channel) {
    store_partial(of.sums, own, share);
  }
}

__global__ void grad_totals_kernel(BatchNormGradTotalsArguments<Called> of, Tiles tiles) {
  const Share share = share_of<1>(tiles, 0);
  const ChannelSums<Called>& sums = of.sums;
  Sums<1> own;
  if (share.channel < sums.channels) {
    for (std::int64_t chunk = share.turn; chunk < sums.chunks; chunk += share.turns) {
      const float* partial = sums.partial + chunk * 2 * sums.channels + share.channel;
      own.first[0] += partial[0];
      own.second[0] += partial[sums.channels];
    }
  }
  sum_by_block(own, share);
  if (share.turn == 0 && share.channel < sums.channels) {
    of.dshift[share.channel] = own.first[0];
    of.dscale[share.channel] = own.second[0];
  }
}

template <class T, int n>
__global__ void grad_kernel(BatchNormGradArguments<Called> to, Tiles tiles) {
  const BatchNormGradSumsArguments<Called>& of = to.of;
  const std::int64_t channels = of.sums.channels;
  const Share share = share_of<n>(tiles, of.sums.rows);
  if (share.channel >= channels) {
    return;
  }
  const Scaling<n> by{load<n>(of.mean + share.channel),
                      load<n>(of.inverse_deviation + share.channel)};
  auto factor = load<n>(to.scale + share.channel);
  auto mean_dz = load<n>(to.dshift + share.channel);
  auto mean_product = load<n>(to.dscale + share.channel);
  const auto rows = static_cast<float>(of.sums.rows);
  for (int c = 0; c < n; ++c) {
    factor.at[c] *= by.inverse_deviation.at[c];
    mean_dz.at[c] /= rows;
    mean_product.at[c] /= rows;
  }
  T* dx = to.dx;
  T* daddend = to.daddend;
  const std::int64_t apart = share.turns * channels;
  for_rows<grad_rows_at_once>(share, [&](auto some, std::int64_t row) {
    constexpr int m = decltype(some)::value;
    const std::int64_t i = row * channels + share.channel;
    auto grads = load_grads<T, m, n>(of, by, i, apart);
    for (int k = 0; k < m; ++k) {
      Neighbours<float, n>& values = grads.normalized.row[k];
      const Neighbours<float, n>& dz = grads.dz.row[k];
      for (int c = 0; c < n; ++c) {
        values.at[c] =
            factor.at[c] * (dz.at[c] - (mean_dz.at[c] + values.at[c] * mean_product.at[c]));
      }
      store(values, dx + i + k * apart);
      if (daddend != nullptr) {
        store(dz, daddend + i + k * apart);
      }
    }
  });
}

}  // namespace

void call(const BatchNormGradSumsArguments<Called>& of, const Site& site) {
  with_channels(of.x.type, of.sums.channels,
                {of.x, of.y, of.dy, of.dy_more, of.mean, of.inverse_deviation},
                [&](auto zero, auto some) {
                  constexpr int n = decltype(some)::value;
                  launch_on(tiles_for(of.sums.channels, n, of.sums.chunks),
                            grad_sums_kernel<decltype(zero), n>, of, site);
                });
}

void call(const BatchNormGradTotalsArguments<Called>& of, const Site& site) {
  launch_on(tiles_for(of.sums.channels, 1, 1), grad_totals_kernel, of, site);
}

void call(const BatchNormGradArguments<Called>& to, const Site& site) {
  const BatchNormGradSumsArguments<Called>& of = to.of;
  with_channels(of.x.type, of.sums.channels,
                {of.x, of.y, of.dy, of.dy_more, of.mean, of.inverse_deviation, to.scale, to.dx,
                 to.dscale, to.dshift, to.daddend},
                [&](auto zero, auto some) {
                  constexpr int n = decltype(some)::value;
                  launch_on(tiles_that_write(of.sums.rows, of.sums.channels, n),
                            grad_kernel<decltype(zero), n>, to, site);
                });
}

}  // namespace crossover::cuda
