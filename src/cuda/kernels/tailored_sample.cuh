// SPDX-License-Identifier: Apache-2.0
// What kernels/tailored.cuh does with a sample: its forward pass, its loss, and the gradients of
// its activations.
#pragma once

#include <cmath>
#include <cstdint>

#include "../plan/launches/tailored_arguments.h"

#ifdef __CUDACC__
#define CROSSOVER_UNROLL_BY(count) _Pragma(CROSSOVER_TEXT(unroll count))
#define CROSSOVER_TEXT(words) #words
#else
#include <cuda_pipeline_primitives.h>
#include <cuda_runtime.h>

#include "launch.cuh"
#define CROSSOVER_UNROLL_BY(count)
#endif

namespace crossover::cuda::tailored {

constexpr unsigned whole_warp = 0xffffffffU;

/// Beyond so many parameters loops stay loops: without, ptxas took 22 s for disc-5 and generation
/// 100, and the instruction cache is small.
template <class Of>
constexpr bool unrolls = [] {
  int parameters = 0;
  for (int l = 0; l < Of::shape.layers; ++l) {
    parameters += (Of::shape.width[l] + 1) * Of::shape.width[l + 1];
  }
  return parameters <= 200;
}();
/// By how many vectors of a sum's terms, and how many of its results a thread has at once.
template <class Of>
constexpr int terms_at_once = unrolls<Of> ? 64 : 2;
constexpr int results_at_once = 16;

// ---- Four bytes at a time into shared memory, beside what threads compute.

template <class T>
__device__ void copy_beside(T* to, const T* from) {
#ifndef __CUDACC__
  __pipeline_memcpy_async(to, from, sizeof(T));
#elif __CUDA_ARCH__ >= 800
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(
                   static_cast<unsigned>(__cvta_generic_to_shared(to))),
               "l"(from));
#else
  *to = *from;
#endif
}

/// For the thread's own.
inline __device__ void wait_for_copies() {
#ifndef __CUDACC__
  __pipeline_commit();
  __pipeline_wait_prior(0);
#elif __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

// ---- Blocks of a cluster: as kernels/device/launch.cuh has them.

#ifdef __CUDACC__
#if __CUDA_ARCH__ >= 900
inline __device__ void cluster_barrier() {
  asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
}
inline __device__ int cluster_rank() {
  int rank = 0;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
inline __device__ float* shared_of(float* own, int rank) {
  float* there = nullptr;
  asm("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(own), "r"(rank));
  return there;
}
#else
inline __device__ void cluster_barrier() {}
inline __device__ int cluster_rank() { return 0; }
inline __device__ float* shared_of(float* own, int /*rank*/) { return own; }
#endif
#endif

/// Of all that train together.
template <class Of>
__device__ void meet() {
  if constexpr (Of::shape.blocks > 1) {
    cluster_barrier();
  } else {
    __syncthreads();
  }
}

// ---- Vectors

struct alignas(16) Four {
  float v[tile];
};
inline __device__ Four load_four(const float* from) { return *reinterpret_cast<const Four*>(from); }

/// The same of another copy of the training.
template <class T>
__device__ T* shifted(T* of_first, std::int64_t shift) {
  return reinterpret_cast<T*>(reinterpret_cast<std::intptr_t>(of_first) + shift);
}

// ---- A step as one thread sees it.

template <class Of>
struct Step {
  const Arguments& of;
  float* shared;
  std::int64_t shift;  ///< TrainingArguments::shifts
  std::int64_t run;
  int step;
  int buffer;  ///< of the two that batches come in by turns
  int rank;    ///< of the block in its cluster

  static constexpr Shape shape = Of::shape;
  static constexpr Layout at = layout_of(Of::shape);
  static constexpr int lanes = Of::shape.lanes;

  /// Of the batch, in a block: row b lies in block b % blocks.
  __device__ int rows_of(int block) const {
    return (of.batch[step] + shape.blocks - 1 - block) / shape.blocks;
  }
  __device__ int rows() const { return rows_of(rank); }
  /// Which row of the batch a block's is.
  __device__ std::int64_t row_of(int row) const { return std::int64_t{row} * shape.blocks + rank; }
  /// A row of a layer's inputs, and of its gradients.
  template <int l>
  __device__ float* x(int row) const {
    constexpr int place = at.x[l];
    constexpr int next = leading_dimension(shape.width[l] + 1);
    return shared + place + (l == 0 ? buffer * at.inputs : 0) + row * next;
  }
  template <int l>
  __device__ float* dy(int row) const {
    constexpr int place = at.dy[l];
    constexpr int next = leading_dimension(shape.width[l + 1]);
    return shared + place + row * next;
  }
};

/// A sample, or none, as one of its lanes sees it.
struct Sample {
  int row, lane;
  bool exists;
};

template <class Of>
__device__ void meet_in_sample() {
  if constexpr (Of::shape.lanes > 1) {
    __syncthreads();
  }
}

/// Whether a lane's `count` places, `lanes` apart, all lie within `end`.
constexpr bool fill(int count, int lanes, int end) { return count * lanes <= end; }

/// y = activation(x wT), with the bias in it, to the next layer's inputs, or as logits to where
/// their gradient comes. Of an activation whose derivative takes its input that goes to the place
/// of the gradient.
template <int l, class Of>
__device__ void layer_forward(const Step<Of>& step, const Sample& sample) {
  constexpr Shape shape = Of::shape;
  constexpr int in = shape.width[l];
  constexpr int out = shape.width[l + 1];
  constexpr int lanes = shape.lanes;
  constexpr Activation activation = shape.activation[l];
  constexpr int mine = ceil_div(out, lanes);
  constexpr int at_once = mine < results_at_once ? mine : results_at_once;
  constexpr int w_next = leading_dimension(in + 1);
  constexpr int vectors = (in + 1) / tile;
  constexpr int rest = (in + 1) % tile;
  constexpr int w_place = Step<Of>::at.w[l];
  const float* x = step.template x<l>(sample.row);
  const float* w = step.shared + w_place;
  float* gradient = step.template dy<l>(sample.row);
  CROSSOVER_UNROLL_BY(unrolls<Of> ? 64 : 1)
  for (int first = 0; first < mine; first += at_once) {
    float sum[at_once] = {};
    const auto row_of = [&](int j) {
      const int o = (first + j) * lanes + sample.lane;
      return fill(mine, lanes, out) && mine % at_once == 0 ? o : (o < out ? o : out - 1);
    };
    CROSSOVER_UNROLL_BY(terms_at_once<Of>)
    for (int k = 0; k < vectors; ++k) {
      const Four terms = load_four(x + k * tile);
      CROSSOVER_UNROLL_BY(at_once)
      for (int j = 0; j < at_once; ++j) {
        const Four factors = load_four(w + row_of(j) * w_next + k * tile);
        CROSSOVER_UNROLL_BY(tile)
        for (int c = 0; c < tile; ++c) {
          sum[j] = std::fma(terms.v[c], factors.v[c], sum[j]);
        }
      }
    }
    if constexpr (rest > 0) {
      const Four terms = load_four(x + vectors * tile);
      CROSSOVER_UNROLL_BY(at_once)
      for (int j = 0; j < at_once; ++j) {
        const Four factors = load_four(w + row_of(j) * w_next + vectors * tile);
        CROSSOVER_UNROLL_BY(rest)
        for (int c = 0; c < rest; ++c) {
          sum[j] = std::fma(terms.v[c], factors.v[c], sum[j]);
        }
      }
    }
    CROSSOVER_UNROLL_BY(at_once)
    for (int j = 0; j < at_once; ++j) {
      const int o = (first + j) * lanes + sample.lane;
      if (!(fill(mine, lanes, out) && mine % at_once == 0) && o >= out) {
        continue;
      }
      float y = sum[j];
      if constexpr (l + 1 == shape.layers) {
        gradient[o] = y;
      } else {
        y = activate(activation, sum[j]);
        if constexpr (derivative_takes_input(activation)) {
          gradient[o] = times_derivative(activation, 1.0F, sum[j]);
        }
        step.template x<l + 1>(sample.row)[o] = y;
      }
      if constexpr (shape.keep) {
        const KeptLayer& kept = step.of.kept[l];
        const std::int64_t place = step.row_of(sample.row) * out + o;
        kept.y[place] = y;
        if (derivative_takes_input(activation)) {
          kept.sum[place] = sum[j];
        }
      }
    }
  }
}

/// dx = (dy w) times the derivative of the activation that made x, to where the gradients of the
/// layer before lie.
template <int l, class Of>
__device__ void layer_backward(const Step<Of>& step, const Sample& sample) {
  constexpr Shape shape = Of::shape;
  constexpr int in = shape.width[l];
  constexpr int out = shape.width[l + 1];
  constexpr int lanes = shape.lanes;
  constexpr Activation activation = shape.activation[l - 1];
  // Columns that a lane reads at once: more of them are fewer loads, but leave lanes without any.
  constexpr int wide = in >= 4 * lanes ? 4 : in >= 2 * lanes ? 2 : 1;
  constexpr int mine = ceil_div(ceil_div(in, wide), lanes);
  constexpr int most = results_at_once / wide;
  constexpr int at_once = mine < most ? mine : most;
  constexpr bool all_exist = fill(mine, lanes * wide, in) && mine % at_once == 0;
  constexpr int w_next = leading_dimension(in + 1);
  constexpr int vectors = out / tile;
  constexpr int rest = out % tile;
  constexpr int w_place = Step<Of>::at.w[l];
  struct alignas(wide * sizeof(float)) Columns {
    float v[wide];
  };
  const float* dy = step.template dy<l>(sample.row);
  const float* x = step.template x<l>(sample.row);
  const float* w = step.shared + w_place;
  float* dx = step.template dy<l - 1>(sample.row);
  CROSSOVER_UNROLL_BY(unrolls<Of> ? 64 : 1)
  for (int first = 0; first < mine; first += at_once) {
    float sum[at_once][wide] = {};
    const auto add_row = [&](int o, float factor) {
      CROSSOVER_UNROLL_BY(at_once)
      for (int j = 0; j < at_once; ++j) {
        const int wanted = ((first + j) * lanes + sample.lane) * wide;
        const int column = all_exist || wanted < in ? wanted : 0;
        const auto factors = *reinterpret_cast<const Columns*>(w + o * w_next + column);
        CROSSOVER_UNROLL_BY(wide)
        for (int c = 0; c < wide; ++c) {
          sum[j][c] = std::fma(factor, factors.v[c], sum[j][c]);
        }
      }
    };
    CROSSOVER_UNROLL_BY(terms_at_once<Of>)
    for (int k = 0; k < vectors; ++k) {
      const Four terms = load_four(dy + k * tile);
      CROSSOVER_UNROLL_BY(tile)
      for (int c = 0; c < tile; ++c) {
        add_row(k * tile + c, terms.v[c]);
      }
    }
    if constexpr (rest > 0) {
      const Four terms = load_four(dy + vectors * tile);
      CROSSOVER_UNROLL_BY(rest)
      for (int c = 0; c < rest; ++c) {
        add_row(vectors * tile + c, terms.v[c]);
      }
    }
    CROSSOVER_UNROLL_BY(at_once)
    for (int j = 0; j < at_once; ++j) {
      CROSSOVER_UNROLL_BY(wide)
      for (int c = 0; c < wide; ++c) {
        const int i = ((first + j) * lanes + sample.lane) * wide + c;
        if (!all_exist && i >= in) {
          continue;
        }
        float v = sum[j][c];
        const std::int64_t place = step.row_of(sample.row) * in + i;
        if constexpr (derivative_takes_input(activation)) {
          if constexpr (shape.keep) {
            step.of.kept[l].product[place] = v;
          }
          v *= dx[i];
        } else {
          v = times_derivative(activation, v, x[i]);
        }
        dx[i] = v;
        if constexpr (shape.keep) {
          step.of.kept[l - 1].dy[place] = v;
        }
      }
    }
  }
}

// ---- The loss of a sample: see loss.cu for how it is computed and why so. Logits become `factor`
// times their gradient.

template <int classes>
__device__ float cross_entropy(float* logits, int label, float factor) {
  const float at_label = logits[label];
  float largest = logits[0];
  CROSSOVER_UNROLL_BY(8)
  for (int c = 1; c < classes; ++c) {
    largest = std::fmax(largest, logits[c]);
  }
  float others = 0;
  CROSSOVER_UNROLL_BY(4)
  for (int c = 0; c < classes; ++c) {
    const float e = std::exp(logits[c] - largest);
    logits[c] = e;
    others += c == label ? 0.0F : e;
  }
  const float normalized = factor / (others + std::exp(at_label - largest));
  CROSSOVER_UNROLL_BY(4)
  for (int c = 0; c < classes; ++c) {
    logits[c] = (c == label ? -others : logits[c]) * normalized;
  }
  return at_label == largest
             ? std::log1p(others)
             : (largest - at_label) + std::log(others + std::exp(at_label - largest));
}

template <class Of>
__device__ void sample_loss(const Step<Of>& step, int row) {
  constexpr Shape shape = Of::shape;
  constexpr Layout at = Step<Of>::at;
  constexpr int classes = shape.classes();
  constexpr int last = shape.layers - 1;
  float* logits = step.template dy<last>(row);
  const float* wanted =
      step.shared + at.wanted + step.buffer * at.wanted_next + row * shape.wanted();
  const float factor = step.of.loss_factor[step.step];
  float sum = 0;
  if constexpr (shape.loss == LossFunction::cross_entropy) {
    sum = cross_entropy<classes>(logits, *reinterpret_cast<const std::int32_t*>(wanted), factor);
  } else {
    CROSSOVER_UNROLL_BY(4)
    for (int c = 0; c < classes; ++c) {
      const LossOfOne<float> one = elementwise_loss(shape.loss, logits[c], wanted[c]);
      sum += one.value;
      logits[c] = factor * one.slope;
    }
  }
  step.shared[at.row_losses + step.buffer * at.row_losses_next + row] = sum;
  if constexpr (shape.keep) {
    for (int c = 0; c < classes; ++c) {
      step.of.kept[last].dy[step.row_of(row) * classes + c] = logits[c];
    }
  }
}

// ---- A sample, forward and back.

template <int l, class Of>
__device__ void all_forward(const Step<Of>& step, const Sample& sample) {
  if constexpr (l < Of::shape.layers) {
    if (sample.exists) {
      layer_forward<l>(step, sample);
    }
    meet_in_sample<Of>();
    all_forward<l + 1>(step, sample);
  }
}

template <int l, class Of>
__device__ void all_backward(const Step<Of>& step, const Sample& sample) {
  if constexpr (l > 0) {
    meet_in_sample<Of>();
    if (sample.exists) {
      layer_backward<l>(step, sample);
    }
    all_backward<l - 1>(step, sample);
  }
}

template <class Of>
__device__ void pass(const Step<Of>& step, const Sample& sample) {
  all_forward<0>(step, sample);
  if (sample.exists && sample.lane == 0) {
    sample_loss(step, sample.row);
  }
  all_backward<Of::shape.layers - 1>(step, sample);
}

}  // namespace crossover::cuda::tailored
