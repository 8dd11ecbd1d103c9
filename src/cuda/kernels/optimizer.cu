// SPDX-License-Identifier: Apache-2.0
#include "optimizer.cuh"

#include "../grid.cuh"

namespace crossover::cuda {
namespace {

__global__ void sgd_kernel(UpdateSpans spans, float learning_rate) {
  for (int s = 0; s < spans.count; ++s) {
    float* w = spans.span[s].w;
    const float* g = spans.span[s].g;
    const std::int64_t count = spans.span[s].count;
    for (std::int64_t i = thread_index(); i < count; i += thread_count()) {
      w[i] = crossover::sgd(w[i], g[i], learning_rate);
    }
  }
}

__global__ void adamw_time_kernel(AdamWConstants constants, std::int32_t* time,
                                  AdamWFactors<float>* factors) {
  *time += 1;
  *factors = adamw_factors<float>(constants, 0.0, *time);
}

__global__ void adamw_kernel(UpdateSpans spans, const AdamWFactors<float>* factors) {
  AdamWFactors<float> f = *factors;
  for (int s = 0; s < spans.count; ++s) {
    const UpdateSpan span = spans.span[s];
    f.keep = span.keep;
    for (std::int64_t i = thread_index(); i < span.count; i += thread_count()) {
      float w = span.w[i];
      float m = span.m[i];
      float v = span.v[i];
      crossover::adamw(w, span.g[i], m, v, f);
      span.w[i] = w;
      span.m[i] = m;
      span.v[i] = v;
    }
  }
}

}  // namespace

void sgd(cudaStream_t stream, const UpdateSpans& spans, float learning_rate) {
  launch(sgd_kernel, grid_for_largest(spans), stream, spans, learning_rate);
}

void adamw_time(cudaStream_t stream, const AdamWConstants& constants, std::int32_t* time,
                AdamWFactors<float>* factors) {
  launch(adamw_time_kernel, {1, 1}, stream, constants, time, factors);
}

void adamw(cudaStream_t stream, const UpdateSpans& spans, const AdamWFactors<float>* factors) {
  launch(adamw_kernel, grid_for_largest(spans), stream, spans, factors);
}

}  // namespace crossover::cuda
