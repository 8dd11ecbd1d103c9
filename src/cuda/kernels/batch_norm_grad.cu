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
