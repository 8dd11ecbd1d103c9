// SPDX-License-Identifier: Apache-2.0
#include "elementwise.cuh"

#include <type_traits>

#include "vectors.cuh"

namespace crossover::cuda {
namespace {

// The activation is an argument of the template, so that no thread branches on it.

template <Activation activation, int n, class T>
__global__ void activate_kernel(const T* x, T* y, std::int64_t count) {
  for_neighbours<n>(count, [&](auto some, std::int64_t i) {
    constexpr int m = decltype(some)::value;
    auto values = load<m>(x + i);
    for (int k = 0; k < m; ++k) {
      values.at[k] = crossover::activate(activation, values.at[k]);
    }
    store(values, y + i);
  });
}

/// Of columns that n divides.
template <Activation activation, int n, class X, class Bias, class T>
__global__ void bias_activate_kernel(const X* x, const Bias* bias, T* y, std::int64_t count,
                                     std::int64_t columns) {
  for_neighbours<n>(count, [&](auto some, std::int64_t i) {
    constexpr int m = decltype(some)::value;
    auto values = load<m>(x + i);
    const auto added = load<m>(bias + i % columns);
    for (int k = 0; k < m; ++k) {
      values.at[k] = crossover::activate(activation, values.at[k] + added.at[k]);
    }
    store(values, y + i);
  });
}

template <Activation activation, int n, class T>
__global__ void activate_grad_kernel(const T* y, const T* dy, T* dx, std::int64_t count) {
  for_neighbours<n>(count, [&](auto some, std::int64_t i) {
    constexpr int m = decltype(some)::value;
    const auto at = load<m>(y + i);
    auto values = load<m>(dy + i);
    for (int k = 0; k < m; ++k) {
      values.at[k] *= derivative_from_result(activation, at.at[k]);
    }
    store(values, dx + i);
  });
}

template <int n, class T>
__global__ void add_kernel(const T* a, const T* b, T* y, std::int64_t count) {
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

/// work(constant) for the constant whose value is the activation.
template <class Work>
void with_activation(Activation activation, const Work& work) {
  switch (activation) {
    case Activation::identity:
      return work(std::integral_constant<Activation, Activation::identity>{});
    case Activation::relu:
      return work(std::integral_constant<Activation, Activation::relu>{});
    case Activation::sigmoid:
      return work(std::integral_constant<Activation, Activation::sigmoid>{});
  }
}

/// T: the narrowest of the three types.
template <class T, class X, class Bias>
void launch_bias(cudaStream_t stream, Activation activation, const X* x, const Bias* bias, T* y,
                 std::int64_t rows, std::int64_t columns) {
  const bool aligned = columns % neighbours<T> == 0 && are_aligned({x, bias, y});
  with_activation(activation, [&](auto chosen) {
    with_neighbours<neighbours<T>>(aligned, [&](auto some) {
      constexpr int n = decltype(some)::value;
      launch(bias_activate_kernel<decltype(chosen)::value, n, X, Bias, T>,
             grid_for(rows * columns / n), stream, x, bias, y, rows * columns, columns);
    });
  });
}

}  // namespace

void activate(cudaStream_t stream, Activation activation, Type type, const void* x, void* y,
              std::int64_t count) {
  with_float(type, [&](auto zero) {
    using T = decltype(zero);
    with_activation(activation, [&](auto chosen) {
      with_neighbours<neighbours<T>>(are_aligned({x, y}), [&](auto some) {
        constexpr int n = decltype(some)::value;
        launch(activate_kernel<decltype(chosen)::value, n, T>, grid_for(count / n), stream,
               static_cast<const T*>(x), static_cast<T*>(y), count);
      });
    });
  });
}

void bias_activate(cudaStream_t stream, Activation activation, Type type, const float* x,
                   const void* bias, void* y, std::int64_t rows, std::int64_t columns) {
  with_float(type, [&](auto zero) {
    using T = decltype(zero);
    launch_bias<T>(stream, activation, x, static_cast<const T*>(bias), static_cast<T*>(y), rows,
                   columns);
  });
}

void channel_bias(cudaStream_t stream, Activation activation, Type type, const float* bias, void* y,
                  std::int64_t rows, std::int64_t channels) {
  with_float(type, [&](auto zero) {
    using T = decltype(zero);
    launch_bias<T>(stream, activation, static_cast<const T*>(y), bias, static_cast<T*>(y), rows,
                   channels);
  });
}

void activate_grad(cudaStream_t stream, Activation activation, Type type, const void* y,
                   const void* dy, void* dx, std::int64_t count) {
  with_float(type, [&](auto zero) {
    using T = decltype(zero);
    with_activation(activation, [&](auto chosen) {
      with_neighbours<neighbours<T>>(are_aligned({y, dy, dx}), [&](auto some) {
        constexpr int n = decltype(some)::value;
        launch(activate_grad_kernel<decltype(chosen)::value, n, T>, grid_for(count / n), stream,
               static_cast<const T*>(y), static_cast<const T*>(dy), static_cast<T*>(dx), count);
      });
    });
  });
}

void add(cudaStream_t stream, Type type, const void* a, const void* b, void* y,
         std::int64_t count) {
  with_float(type, [&](auto zero) {
    using T = decltype(zero);
    constexpr int at_once = neighbours<T>;
    with_neighbours<at_once>(are_aligned({a, b, y}), [&](auto some) {
      constexpr int n = decltype(some)::value;
      launch(add_kernel<n, T>, grid_for(count / n), stream, static_cast<const T*>(a),
             static_cast<const T*>(b), static_cast<T*>(y), count);
    });
  });
}

cudaError_t find_kernels() { return find_code(add_kernel<1, float>); }

}  // namespace crossover::cuda
