// SPDX-License-Identifier: Apache-2.0
#include "../plan/launches/elementwise.h"

#include <cmath>
#include <limits>
#include <type_traits>
#include <variant>

#include "../base/site.h"
#include "convert.cuh"
#include "crossover/random.h"
#include "networks.cuh"
#include "vectors.cuh"

namespace crossover::cuda {
namespace {

// Where time counts most, the function is an argument of the template, so that no thread branches
// on it.

template <class Of, int n, class T>
__global__ void map_kernel(Of function, const T* x, T* y, std::int64_t count, std::int64_t stride) {
  x = of_network(x, stride);
  y = of_network(y, stride);
  for_neighbours<n>(count, [&](auto some, std::int64_t i) {
    constexpr int m = decltype(some)::value;
    auto values = load<m>(x + i);
    for (int k = 0; k < m; ++k) {
      values.at[k] = function.value(ScalarMaths<float>(), values.at[k]);
    }
    store(values, y + i);
  });
}

template <class Of, int n, class T>
__global__ void map_grad_kernel(Of function, const T* at, const T* dy, T* dx, std::int64_t count,
                                std::int64_t stride) {
  at = of_network(at, stride);
  dy = of_network(dy, stride);
  dx = of_network(dx, stride);
  for_neighbours<n>(count, [&](auto some, std::int64_t i) {
    constexpr int m = decltype(some)::value;
    const auto point = load<m>(at + i);
    auto values = load<m>(dy + i);
    for (int k = 0; k < m; ++k) {
      values.at[k] = function.gradient(ScalarMaths<float>(), values.at[k], point.at[k]);
    }
    store(values, dx + i);
  });
}

/// Of columns that n divides.
template <class Chosen, int n, class X, class Bias, class T>
__global__ void bias_activate_kernel(Chosen activation, const X* x, const Bias* bias, T* y,
                                     std::int64_t count, std::int64_t columns,
                                     std::int64_t stride) {
  x = of_network(x, stride);
  bias = of_network(bias, stride);
  y = of_network(y, stride);
  for_neighbours<n>(count, [&](auto some, std::int64_t i) {
    constexpr int m = decltype(some)::value;
    auto values = load<m>(x + i);
    const auto added = load<m>(bias + i % columns);
    for (int k = 0; k < m; ++k) {
      values.at[k] = activation.value(ScalarMaths<float>(), values.at[k] + added.at[k]);
    }
    store(values, y + i);
  });
}

/// Of images in plain layout whose pixels n divides.
template <class Chosen, int n, class T>
__global__ void plain_bias_kernel(Chosen activation, T* y, const T* bias, std::int64_t count,
                                  ChannelView images) {
  for_neighbours<n>(count, [&](auto some, std::int64_t i) {
    constexpr int m = decltype(some)::value;
    auto values = load<m>(y + i);
    const float added = widen(bias[i / images.inner % images.channels]);
    for (int k = 0; k < m; ++k) {
      values.at[k] = activation.value(ScalarMaths<float>(), values.at[k] + added);
    }
    store(values, y + i);
  });
}

template <int n, class T>
__global__ void add_kernel(const T* a, const T* b, T* y, std::int64_t count, std::int64_t stride) {
  a = of_network(a, stride);
  b = of_network(b, stride);
  y = of_network(y, stride);
  for_neighbours<n>(count, [&](auto some, std::int64_t i) {
    constexpr int m = decltype(some)::value;
    auto values = load<m>(a + i);
    const auto added = load<m>(b + i);
    for (int k = 0; k < m; ++k) {
      values.at[k] += added.at[k];
    }
    store(values, y + i);
  });
}

template <class Which>
void launch_map(const Which& which, const Address& x, const Address& y, std::int64_t count,
                const Site& site) {
  with_float(x.type, [&](auto zero) {
    using T = decltype(zero);
    with_function(which, [&](const auto& of) {
      with_neighbours<neighbours<T>>(are_aligned({x, y}), [&](auto some) {
        constexpr int n = decltype(some)::value;
        launch_for_networks(map_kernel<std::decay_t<decltype(of)>, n, T>, grid_for(count / n), site,
                            of, x, y, count);
      });
    });
  });
}

template <class Which>
void launch_map_grad(const Which& which, const Address& at, const Address& dy, const Address& dx,
                     std::int64_t count, const Site& site) {
  with_float(at.type, [&](auto zero) {
    using T = decltype(zero);
    with_function(which, [&](const auto& of) {
      with_neighbours<neighbours<T>>(are_aligned({at, dy, dx}), [&](auto some) {
        constexpr int n = decltype(some)::value;
        launch_for_networks(map_grad_kernel<std::decay_t<decltype(of)>, n, T>, grid_for(count / n),
                            site, of, at, dy, dx, count);
      });
    });
  });
}

struct AnyActivation {
  Activation activation;

  __device__ float value(ScalarMaths<float> /*maths*/, float x) const {
    return activate(activation, x);
  }
};

/// work(activation): of few as a constant, since each makes a kernel more for every type.
template <class Work>
void with_few_activations(Activation activation, const Work& work) {
  switch (activation) {
    case Activation::identity:
      return work(ActivationOf<Activation::identity>());
    case Activation::relu:
      return work(ActivationOf<Activation::relu>());
    default:
      return work(AnyActivation{activation});
  }
}

/// T: the narrowest of the three types.
template <class T, class X, class Bias>
void launch_bias(Activation activation, const X* x, const Bias* bias, T* y, std::int64_t rows,
                 std::int64_t columns, const Site& site) {
  const bool aligned = columns % neighbours<T> == 0 && are_aligned({x, bias, y});
  with_few_activations(activation, [&](auto chosen) {
    with_neighbours<neighbours<T>>(aligned, [&](auto some) {
      constexpr int n = decltype(some)::value;
      launch_for_networks(bias_activate_kernel<decltype(chosen), n, X, Bias, T>,
                          grid_for(rows * columns / n), site, chosen, x, bias, y, rows * columns,
                          columns);
    });
  });
}

/// `n` neighbours at once.
template <int n, class From, class To>
__global__ void cast_kernel(CalledSpans<CastSpan<Called>> spans, std::int64_t stride) {
  for (int s = 0; s < spans.count; ++s) {
    const From* x = of_network(spans.span[s].x, stride);
    To* y = of_network(spans.span[s].y, stride);
    for_neighbours<n>(spans.span[s].count, [&](auto some, std::int64_t i) {
      store(load<decltype(some)::value>(x + i), y + i);
    });
  }
}

template <class From, class To>
void launch_cast(const CalledSpans<CastSpan<Called>>& spans, const Site& site) {
  constexpr int at_once = neighbours<std::conditional_t<sizeof(From) < sizeof(To), From, To>>;
  bool aligned = true;
  for (int s = 0; s < spans.count; ++s) {
    aligned = aligned && are_aligned({spans.span[s].x, spans.span[s].y});
  }
  with_neighbours<at_once>(aligned, [&](auto some) {
    constexpr int n = decltype(some)::value;
    launch_for_networks(cast_kernel<n, From, To>, grid_for_largest(spans, n), site, spans);
  });
}

/// Of two dimensions that a thread swaps; 1 and 1 leaves them as they are.
struct Swap {
  std::int64_t outer = 1, inner = 1;
};

__device__ std::int64_t through(std::int64_t i, const Swap& swap) {
  return swap.outer == 1 || swap.inner == 1 ? i : swapped(i, swap.outer, swap.inner);
}

/// Neighbouring threads write neighbours, and read apart.
template <class T>
__global__ void reshape_kernel(const T* x, T* y, std::int64_t count, Swap to_plain,
                               Swap from_plain) {
  for (std::int64_t i = thread_index(); i < count; i += thread_count()) {
    y[i] = x[through(through(i, to_plain), from_plain)];
  }
}

__global__ void zero_kernel(float* to, std::int64_t count, std::int64_t stride) {
  to = of_network(to, stride);
  for (std::int64_t i = thread_index(); i < count; i += thread_count()) {
    to[i] = 0;
  }
}

__global__ void count_up_kernel(std::int32_t* counter, std::int32_t by, std::int64_t stride) {
  *of_network(counter, stride) += by;
}

template <class T>
__global__ void dropout_kernel(const T* x, T* y, std::int64_t count, Arrangement arrangement,
                               std::uint32_t least, float factor, std::int64_t seed,
                               const std::int32_t* step, std::int32_t offset, std::int64_t stride) {
  x = of_network(x, stride);
  y = of_network(y, stride);
  const std::uint64_t start = dropout_start(seed, *of_network(step, stride) + offset);
  const bool is_plain = arrangement.channels == 1 || arrangement.pixels == 1;
  for (std::int64_t i = thread_index(); i < count; i += thread_count()) {
    const std::int64_t element =
        is_plain ? i : swapped(i, arrangement.pixels, arrangement.channels);
    const bool keeps = upper_bits(start + static_cast<std::uint64_t>(element)) >= least;
    y[i] = narrow<T>(keeps ? widen(x[i]) * factor : 0.0F);
  }
}

}  // namespace

void call(const ActivateArguments<Called>& of, const Site& site) {
  launch_map(of.activation, of.x, of.y, of.count, site);
}

void call(const BiasActivateArguments<Called>& of, const Site& site) {
  with_float(of.y.type, [&](auto zero) {
    using T = decltype(zero);
    launch_bias<T, float, T>(of.activation, of.x, of.bias, of.y, of.rows, of.columns, site);
  });
}

void call(const ChannelBiasArguments<Called>& of, const Site& site) {
  with_float(of.y.type, [&](auto zero) {
    using T = decltype(zero);
    const ChannelView& images = of.images;
    if (images.inner == 1) {
      return launch_bias<T, T, T>(of.activation, of.y, of.bias, of.y, images.outer, images.channels,
                                  site);
    }
    constexpr int at_once = neighbours<T>;
    const std::int64_t count = images.rows() * images.channels;
    with_few_activations(of.activation, [&](auto chosen) {
      with_neighbours<at_once>(images.inner % at_once == 0 && are_aligned({of.y}), [&](auto some) {
        constexpr int n = decltype(some)::value;
        launch(plain_bias_kernel<decltype(chosen), n, T>, grid_for(count / n), site.stream, chosen,
               of.y, of.bias, count, images);
      });
    });
  });
}

void call(const ActivateGradArguments<Called>& of, const Site& site) {
  launch_map_grad(of.activation, of.at, of.dy, of.dx, of.count, site);
}

void call(const MapArguments<Called>& of, const Site& site) {
  launch_map(of.function, of.x, of.y, of.count, site);
}

void call(const MapGradArguments<Called>& of, const Site& site) {
  launch_map_grad(of.function, of.x, of.dy, of.dx, of.count, site);
}

void call(const AddArguments<Called>& of, const Site& site) {
  with_float(of.y.type, [&](auto zero) {
    using T = decltype(zero);
    constexpr int at_once = neighbours<T>;
    with_neighbours<at_once>(are_aligned({of.a, of.b, of.y}), [&](auto some) {
      constexpr int n = decltype(some)::value;
      launch_for_networks(add_kernel<n, T>, grid_for(of.count / n), site, of.a, of.b, of.y,
                          of.count);
    });
  });
}

void call(const CastArguments<Called>& of, const Site& site) {
  const Type from = of.casts.span[0].x.type;
  const Type to = of.casts.span[0].y.type;
  with_float(from == Type::f32 ? to : from, [&](auto zero) {
    using T = decltype(zero);
    if (from == to) {
      launch_cast<T, T>(of.casts, site);
    } else if (from == Type::f32) {
      launch_cast<float, T>(of.casts, site);
    } else {
      launch_cast<T, float>(of.casts, site);
    }
  });
}

void call(const ReshapeArguments<Called>& of, const Site& site) {
  const auto reshape = [&](auto* kernel) {
    launch(kernel, grid_for(of.count), site.stream, of.x, of.y, of.count,
           Swap{of.to.pixels, of.to.channels}, Swap{of.from.channels, of.from.pixels});
  };
  bytes(of.x.type) == sizeof(std::uint16_t) ? reshape(reshape_kernel<std::uint16_t>)
                                            : reshape(reshape_kernel<std::uint32_t>);
}

void call(const ZeroArguments<Called>& of, const Site& site) {
  launch_for_networks(zero_kernel, grid_for(of.count), site, of.to, of.count);
}

void call(const CountArguments<Called>& of, const Site& site) {
  launch_for_networks(count_up_kernel, {1, 1}, site, of.counter, of.by);
}

void call(const DropoutArguments<Called>& of, const Site& site) {
  // Of 24 bits as a number in [0, 1), those that are not below the probability: without f64, of
  // which most GPUs compute little.
  const auto least = static_cast<std::uint32_t>(std::ceil(of.probability * (1 << 24)));
  const auto factor = static_cast<float>(1 / (1 - of.probability));
  with_float(of.x.type, [&](auto zero) {
    launch_for_networks(dropout_kernel<decltype(zero)>, grid_for(of.count), site, of.x, of.y,
                        of.count, of.arrangement, least, factor, of.seed, of.step, of.offset);
  });
}

cudaError_t find_kernels() { return find_code(add_kernel<1, float>); }

// ---- Products

namespace {

template <class T>
__global__ void multiply_kernel(MultiplyArguments<Called> of) {
  const T* a = of.a;
  const T* b = of.b;
  T* y = of.y;
  const std::int64_t count = of.outer * of.places * of.inner;
  for (std::int64_t i = thread_index(); i < count; i += thread_count()) {
    const std::int64_t factor =
        of.places == 1 ? i : i / (of.places * of.inner) * of.inner + i % of.inner;
    y[i] = narrow<T>(widen(a[i]) * widen(b[factor]));
  }
}

/// Neighbouring threads read neighbours.
template <class T>
__global__ void multiply_sums_kernel(MultiplySumsArguments<Called> of) {
  const T* a = of.a;
  const T* b = of.b;
  T* sums = of.sums;
  for (std::int64_t i = thread_index(); i < of.outer * of.inner; i += thread_count()) {
    const std::int64_t first = i / of.inner * of.places * of.inner + i % of.inner;
    float sum = 0;
    for (std::int64_t place = 0; place < of.places; ++place) {
      const std::int64_t at = first + place * of.inner;
      sum += widen(a[at]) * widen(b[at]);
    }
    sums[i] = narrow<T>(sum);
  }
}

template <class T>
__global__ void multiply_row_sums_kernel(MultiplySumsArguments<Called> of) {
  const T* a = of.a;
  const T* b = of.b;
  T* sums = of.sums;
  const int lane = static_cast<int>(threadIdx.x) % warp_threads;
  for (std::int64_t row = thread_index() / warp_threads; row < of.outer;
       row += thread_count() / warp_threads) {
    float sum = 0;
    for (std::int64_t place = lane; place < of.places; place += warp_threads) {
      sum += widen(a[row * of.places + place]) * widen(b[row * of.places + place]);
    }
    sum = group_sum(sum);
    if (lane == 0) {
      sums[row] = narrow<T>(sum);
    }
  }
}

}  // namespace

void call(const MultiplyArguments<Called>& of, const Site& site) {
  with_float(of.y.type, [&](auto zero) {
    launch(multiply_kernel<decltype(zero)>, grid_for(of.outer * of.places * of.inner), site.stream,
           of);
  });
}

void call(const MultiplySumsArguments<Called>& of, const Site& site) {
  with_float(of.sums.type, [&](auto zero) {
    using T = decltype(zero);
    if (of.inner == 1) {
      launch(multiply_row_sums_kernel<T>, grid_for(of.outer * warp_threads), site.stream, of);
    } else {
      launch(multiply_sums_kernel<T>, grid_for(of.outer * of.inner), site.stream, of);
    }
  });
}

// ---- Blocks

namespace {

/// Neighbouring threads write neighbours where the last extent does. Index is 32 bits wide where
/// that is enough: a GPU divides these several times faster.
template <class T, class Index>
__global__ void rearrange_kernel(const T* from, T* to, std::int64_t count, CopiedExtents extents) {
  for (std::int64_t i = thread_index(); i < count; i += thread_count()) {
    auto rest = static_cast<Index>(i);
    std::int64_t read = 0;
    std::int64_t write = 0;
    for (int e = extents.used; e-- > 0;) {
      const auto extent = static_cast<Index>(extents.count[e]);
      const auto at = static_cast<std::int64_t>(rest % extent);
      rest /= extent;
      read += at * extents.from[e];
      write += at * extents.to[e];
    }
    to[write] = from[read];
  }
}

template <class T>
void rearrange(const RearrangeArguments<Called>& of, const Site& site) {
  const T* from = static_cast<const T*>(of.from) + of.from_first;
  T* to = static_cast<T*>(of.to) + of.to_first;
  const auto start = [&](auto* kernel) {
    launch(kernel, grid_for(of.count), site.stream, from, to, of.count, of.extents);
  };
  of.count <= std::numeric_limits<std::uint32_t>::max() ? start(rearrange_kernel<T, std::uint32_t>)
                                                        : start(rearrange_kernel<T, std::uint64_t>);
}

}  // namespace

void call(const RearrangeArguments<Called>& of, const Site& site) {
  bytes(of.from.type) == sizeof(std::uint16_t) ? rearrange<std::uint16_t>(of, site)
                                               : rearrange<std::uint32_t>(of, site);
}

// ---- Sums

namespace {

/// A block takes 32 columns, n of them with each thread, and a part of the rows, which its threads
/// share so that a warp reads neighbours. n divides the columns.
template <int n, class T>
__global__ void column_sums_kernel(const T* matrix, std::int64_t rows, std::int64_t columns,
                                   unsigned tiles, std::int64_t rows_of_a_part, bool accumulate,
                                   float* sums, std::int64_t stride) {
  matrix = of_network(matrix, stride);
  sums = of_network(sums, stride);
  constexpr int across = warp_threads / n;  // threads
  constexpr int rows_at_once = block_threads / across;
  __shared__ float partial[rows_at_once * warp_threads];
  const std::int64_t tile = static_cast<std::int64_t>(blockIdx.x % tiles) * warp_threads;
  const std::int64_t part = blockIdx.x / tiles;
  const std::int64_t end = (part + 1) * rows_of_a_part < rows ? (part + 1) * rows_of_a_part : rows;
  const int first = static_cast<int>(threadIdx.x) % across * n;  // of the thread's, in the tile
  const int own_row = static_cast<int>(threadIdx.x) / across;
  Neighbours<float, n> own{};
  if (tile + first < columns) {
    for (std::int64_t row = part * rows_of_a_part + own_row; row < end; row += rows_at_once) {
      const auto values = load<n>(matrix + row * columns + tile + first);
      for (int k = 0; k < n; ++k) {
        own.at[k] += values.at[k];
      }
    }
  }
  for (int k = 0; k < n; ++k) {
    partial[own_row * warp_threads + first + k] = own.at[k];
  }
  __syncthreads();
  const int lane = static_cast<int>(threadIdx.x) % warp_threads;
  const int warp = static_cast<int>(threadIdx.x) / warp_threads;
  if constexpr (rows_at_once > block_warps) {  // by all warps, until one is enough
    float sum = 0;
    for (int row = warp; row < rows_at_once; row += block_warps) {
      sum += partial[row * warp_threads + lane];
    }
    __syncthreads();
    partial[threadIdx.x] = sum;
    __syncthreads();
  }
  const std::int64_t column = tile + lane;
  if (warp == 0 && column < columns) {
    sums += part * columns;
    float total = accumulate ? sums[column] : 0.0F;
    for (int w = 0; w < block_warps; ++w) {
      total += partial[w * warp_threads + lane];
    }
    sums[column] = total;
  }
}

/// A warp takes a row.
template <int n>
__global__ void row_sums_kernel(const float* matrix, std::int64_t rows, std::int64_t columns,
                                float* sums, std::int64_t stride) {
  matrix = of_network(matrix, stride);
  sums = of_network(sums, stride);
  const int lane = static_cast<int>(threadIdx.x) % warp_threads;
  for (std::int64_t row = thread_index() / warp_threads; row < rows;
       row += thread_count() / warp_threads) {
    float sum = 0;
    for_neighbours<n>(columns, lane, warp_threads, [&](auto some, std::int64_t i) {
      constexpr int m = decltype(some)::value;
      const auto values = load<m>(matrix + row * columns + i);
      for (int k = 0; k < m; ++k) {
        sum += values.at[k];
      }
    });
    for (int half = warp_threads / 2; half > 0; half /= 2) {
      sum += __shfl_xor_sync(all_lanes, sum, half);
    }
    if (lane == 0) {
      sums[row] = sum;
    }
  }
}

}  // namespace

void call(const ColumnSumsArguments<Called>& of, const Site& site) {
  const auto tiles = static_cast<unsigned>((of.columns + warp_threads - 1) / warp_threads);
  const Grid grid{tiles * static_cast<unsigned>(of.parts), block_threads};
  with_float(of.matrix.type, [&](auto zero) {
    using T = decltype(zero);
    constexpr int at_once = neighbours<T>;
    const bool aligned = of.columns % at_once == 0 && are_aligned({of.matrix});
    with_neighbours<at_once>(aligned, [&](auto some) {
      launch_for_networks(column_sums_kernel<decltype(some)::value, T>, grid, site, of.matrix,
                          of.rows, of.columns, tiles, (of.rows + of.parts - 1) / of.parts,
                          of.accumulate, of.sums);
    });
  });
}

void call(const RowSumsArguments<Called>& of, const Site& site) {
  constexpr int at_once = neighbours<float>;
  with_neighbours<at_once>(of.columns % at_once == 0 && are_aligned({of.matrix}), [&](auto some) {
    launch_for_networks(row_sums_kernel<decltype(some)::value>, grid_for(of.rows * warp_threads),
                        site, of.matrix, of.rows, of.columns, of.sums);
  });
}

}  // namespace crossover::cuda
