// SPDX-License-Identifier: Apache-2.0
#include "loops.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "split.h"

#ifdef __SSE3__
#include <pmmintrin.h>
#include <xmmintrin.h>
#endif

namespace crossover::cpu {
namespace {

template <Activation activation, class T>
void activate_as(int threads, const T* x, T* y, std::int64_t count) {
  split(threads, count, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      y[i] = narrowed<T>(crossover::activate(activation, widened(x[i])));
    }
  });
}

template <Activation activation, class T>
void activate_grad_as(int threads, const T* y, const T* dy, T* dx, std::int64_t count) {
  split(threads, count, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      dx[i] = narrowed<T>(widened(dy[i]) * derivative_from_result(activation, widened(y[i])));
    }
  });
}

}  // namespace

template <class From, class To>
void cast(int threads, const From* x, To* y, std::int64_t count) {
  split(threads, count, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      y[i] = narrowed<To>(widened(x[i]));
    }
  });
}

// The choice stands outside the loops, so that each compiles to vector code of one activation.

template <class T>
void activate(int threads, Activation activation, const T* x, T* y, std::int64_t count) {
  switch (activation) {
    case Activation::identity:
      return activate_as<Activation::identity>(threads, x, y, count);
    case Activation::relu:
      return activate_as<Activation::relu>(threads, x, y, count);
    case Activation::sigmoid:
      return activate_as<Activation::sigmoid>(threads, x, y, count);
  }
}

template <class T>
void activate_grad(int threads, Activation activation, const T* y, const T* dy, T* dx,
                   std::int64_t count) {
  switch (activation) {
    case Activation::identity:
      return activate_grad_as<Activation::identity>(threads, y, dy, dx, count);
    case Activation::relu:
      return activate_grad_as<Activation::relu>(threads, y, dy, dx, count);
    case Activation::sigmoid:
      return activate_grad_as<Activation::sigmoid>(threads, y, dy, dx, count);
  }
}

template <class T>
void add(int threads, const T* a, const T* b, T* y, std::int64_t count) {
  split(threads, count, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      y[i] = narrowed<T>(widened(a[i]) + widened(b[i]));
    }
  });
}

template <class T>
void column_sums(int threads, const T* matrix, std::int64_t rows, std::int64_t columns,
                 bool accumulate, float* sums) {
  split(threads, columns, [=](std::int64_t begin, std::int64_t end) {
    if (!accumulate) {
      std::fill(sums + begin, sums + end, 0.0F);
    }
    for (std::int64_t r = 0; r < rows; ++r) {
      const T* row = matrix + r * columns;
      for (std::int64_t c = begin; c < end; ++c) {
        sums[c] += widened(row[c]);
      }
    }
  });
}

template <class T>
float softmax_cross_entropy(int threads, const float* logits, const std::int32_t* labels,
                            std::int64_t batch, std::int64_t classes, float scale, T* dlogits) {
  const float factor = scale / static_cast<float>(batch);
  double loss = 0;  // in double: a batch may have thousands of rows
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static) reduction(+ : loss)
  for (std::int64_t i = 0; i < batch; ++i) {
    const float* row = logits + i * classes;
    T* gradient = dlogits + i * classes;
    const float largest = *std::max_element(row, row + classes);
    float sum = 0;
    if constexpr (std::is_same_v<T,
                                 float>) {  // has room for the exponentials until the sum is known
      for (std::int64_t c = 0; c < classes; ++c) {
        gradient[c] = std::exp(row[c] - largest);
        sum += gradient[c];
      }
    } else {
      for (std::int64_t c = 0; c < classes; ++c) {
        sum += std::exp(row[c] - largest);
      }
    }
    loss += static_cast<double>(largest - row[labels[i]]) + std::log(static_cast<double>(sum));
    const float normalized = factor / sum;
    if constexpr (std::is_same_v<T, float>) {
      for (std::int64_t c = 0; c < classes; ++c) {
        gradient[c] *= normalized;
      }
      gradient[labels[i]] -= factor;
    } else {
      for (std::int64_t c = 0; c < classes; ++c) {
        gradient[c] = narrowed<T>(std::exp(row[c] - largest) * normalized);
      }
      const std::int32_t label = labels[i];
      gradient[label] = narrowed<T>(std::exp(row[label] - largest) * normalized - factor);
    }
  }
  return static_cast<float>(loss / static_cast<double>(batch));
}

// NOLINTBEGIN(bugprone-macro-parentheses): T is a type
#define CROSSOVER_LOOPS_FOR(T)                             \
  template void cast(int, const float*, T*, std::int64_t); \
  template void cast(int, const T*, float*, std::int64_t); \
  CROSSOVER_LOOPS_WITHIN(T)
#define CROSSOVER_LOOPS_WITHIN(T)                                                            \
  template void activate(int, Activation, const T*, T*, std::int64_t);                       \
  template void activate_grad(int, Activation, const T*, const T*, T*, std::int64_t);        \
  template void add(int, const T*, const T*, T*, std::int64_t);                              \
  template void column_sums(int, const T*, std::int64_t, std::int64_t, bool, float*);        \
  template float softmax_cross_entropy(int, const float*, const std::int32_t*, std::int64_t, \
                                       std::int64_t, float, T*);
// NOLINTEND(bugprone-macro-parentheses)
template void cast(int, const float*, float*, std::int64_t);
CROSSOVER_LOOPS_WITHIN(float)
CROSSOVER_LOOPS_FOR(Bf16)
CROSSOVER_LOOPS_FOR(F16)
#undef CROSSOVER_LOOPS_FOR
#undef CROSSOVER_LOOPS_WITHIN

void sgd(int threads, float* w, const float* g, std::int64_t count, float learning_rate) {
  split(threads, count, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      w[i] = crossover::sgd(w[i], g[i], learning_rate);
    }
  });
}

void adamw(int threads, float* w, const float* g, float* m, float* v, std::int64_t count,
           const AdamWFactors<float>& factors) {
  split(threads, count, [=](std::int64_t begin, std::int64_t end) {
    const AdamWFactors<float> f = factors;
    for (std::int64_t i = begin; i < end; ++i) {
      crossover::adamw(w[i], g[i], m[i], v[i], f);
    }
  });
}

void clear(int threads, void* memory, std::int64_t bytes) {
  auto* at = static_cast<char*>(memory);
  split(threads, bytes, [=](std::int64_t begin, std::int64_t end) {
    std::memset(at + begin, 0, static_cast<std::size_t>(end - begin));
  });
}

bool flush_denormals(int threads) {
#ifdef __SSE3__
#pragma omp parallel num_threads(threads)
  {
    _MM_SET_FLUSH_ZERO_MODE(_MM_FLUSH_ZERO_ON);
    _MM_SET_DENORMALS_ZERO_MODE(_MM_DENORMALS_ZERO_ON);
  }
  return true;
#else
  static_cast<void>(threads);
  return false;
#endif
}

}  // namespace crossover::cpu
