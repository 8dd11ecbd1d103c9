// SPDX-License-Identifier: Apache-2.0
#include "elementwise.cuh"

#include <type_traits>

#include "../grid.cuh"
#include "convert.cuh"

namespace crossover::cuda {
namespace {

// The activation is an argument of the template, so that no thread branches on it.

template <Activation activation, class T>
__global__ void activate_kernel(const T* x, T* y, std::int64_t count) {
  for (std::int64_t i = thread_index(); i < count; i += thread_count()) {
    y[i] = narrow<T>(crossover::activate(activation, widen(x[i])));
  }
}

template <Activation activation, class X, class Bias, class T>
__global__ void bias_activate_kernel(const X* x, const Bias* bias, T* y, std::int64_t count,
                                     std::int64_t columns) {
  for (std::int64_t i = thread_index(); i < count; i += thread_count()) {
    y[i] = narrow<T>(crossover::activate(activation, widen(x[i]) + widen(bias[i % columns])));
  }
}

template <Activation activation, class T>
__global__ void activate_grad_kernel(const T* y, const T* dy, T* dx, std::int64_t count) {
  for (std::int64_t i = thread_index(); i < count; i += thread_count()) {
    dx[i] = narrow<T>(widen(dy[i]) * derivative_from_result(activation, widen(y[i])));
  }
}

template <class T>
__global__ void add_kernel(const T* a, const T* b, T* y, std::int64_t count) {
  for (std::int64_t i = thread_index(); i < count; i += thread_count()) {
    y[i] = narrow<T>(widen(a[i]) + widen(b[i]));
  }
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

}  // namespace

void activate(cudaStream_t stream, Activation activation, Type type, const void* x, void* y,
              std::int64_t count) {
  with_float(type, [&](auto zero) {
    using T = decltype(zero);
    with_activation(activation, [&](auto chosen) {
      launch(activate_kernel<decltype(chosen)::value, T>, grid_for(count), stream,
             static_cast<const T*>(x), static_cast<T*>(y), count);
    });
  });
}

void bias_activate(cudaStream_t stream, Activation activation, Type type, const float* x,
                   const void* bias, void* y, std::int64_t rows, std::int64_t columns) {
  with_float(type, [&](auto zero) {
    using T = decltype(zero);
    with_activation(activation, [&](auto chosen) {
      launch(bias_activate_kernel<decltype(chosen)::value, float, T, T>, grid_for(rows * columns),
             stream, x, static_cast<const T*>(bias), static_cast<T*>(y), rows * columns, columns);
    });
  });
}

void channel_bias(cudaStream_t stream, Activation activation, Type type, const float* bias, void* y,
                  std::int64_t rows, std::int64_t channels) {
  with_float(type, [&](auto zero) {
    using T = decltype(zero);
    with_activation(activation, [&](auto chosen) {
      launch(bias_activate_kernel<decltype(chosen)::value, T, float, T>, grid_for(rows * channels),
             stream, static_cast<const T*>(y), bias, static_cast<T*>(y), rows * channels, channels);
    });
  });
}

void activate_grad(cudaStream_t stream, Activation activation, Type type, const void* y,
                   const void* dy, void* dx, std::int64_t count) {
  with_float(type, [&](auto zero) {
    using T = decltype(zero);
    with_activation(activation, [&](auto chosen) {
      launch(activate_grad_kernel<decltype(chosen)::value, T>, grid_for(count), stream,
             static_cast<const T*>(y), static_cast<const T*>(dy), static_cast<T*>(dx), count);
    });
  });
}

void add(cudaStream_t stream, Type type, const void* a, const void* b, void* y,
         std::int64_t count) {
  with_float(type, [&](auto zero) {
    using T = decltype(zero);
    launch(add_kernel<T>, grid_for(count), stream, static_cast<const T*>(a),
           static_cast<const T*>(b), static_cast<T*>(y), count);
  });
}

cudaError_t find_kernels() { return find_code(add_kernel<float>); }

}  // namespace crossover::cuda
