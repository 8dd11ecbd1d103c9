// SPDX-License-Identifier: Apache-2.0
// The loss of a batch in shared memory: see kernels/loss.cu for how it is computed and why so.
#pragma once

#include <cmath>

#include "persistent_block.cuh"

namespace crossover::cuda::persistent {

/// The cross-entropy of a row, and `factor` times its gradient.
inline __device__ float cross_entropy(const float* logits, int label, float* gradient, int classes,
                                      float factor) {
  const float at_label = logits[label];
  float largest = logits[0];
  for (int c = 1; c < classes; ++c) {
    largest = std::fmax(largest, logits[c]);
  }
  float others = 0;
  for (int c = 0; c < classes; ++c) {
    const float e = std::exp(logits[c] - largest);
    gradient[c] = e;
    others += c == label ? 0.0F : e;
  }
  const float normalized = factor / (others + std::exp(at_label - largest));
  for (int c = 0; c < classes; ++c) {
    gradient[c] = (c == label ? -others : gradient[c]) * normalized;
  }
  return at_label == largest
             ? std::log1p(others)
             : (largest - at_label) + std::log(others + std::exp(at_label - largest));
}

/// The sum over a row of an ElementwiseLoss, and `factor` times its gradient.
inline __device__ float elementwise_losses(LossFunction function, const float* logits,
                                           const float* targets, float* gradient, int outputs,
                                           float factor) {
  float sum = 0;
  for (int c = 0; c < outputs; ++c) {
    const LossOfOne<float> one = elementwise_loss(function, logits[c], targets[c]);
    sum += one.value;
    gradient[c] = factor * one.slope;
  }
  return sum;
}

/// Each row's loss, and the gradient of its logits, by one thread.
template <bool keep, class Team>
__device__ int loss(const Block<Team>& block, int taken) {
  const PersistentArguments& of = block.of;
  const OnChipLayer& last = of.layer[of.layers - 1].on_chip;
  const int classes = last.out;
  const int next = leading_dimension(classes);
  const float factor = of.loss_factor[block.step];
  const int rows = block.rows();
  const int tasks = ceil_div(rows, warp_threads);
  for (int task = block.of_memory.first_task_after(taken); task < tasks;
       task += block.of_memory.count) {
    const int row = task * warp_threads + block.lane;
    if (row >= rows) {
      continue;
    }
    const float* logits = block.shared + last.y + row * next;
    float* gradient = block.shared + last.dy + row * next;
    const float* wanted = block.wanted() + row * of.wanted_of_row;
    block.shared[of.places.row_losses + row] =
        of.loss_function == LossFunction::cross_entropy
            ? cross_entropy(logits, *reinterpret_cast<const std::int32_t*>(wanted), gradient,
                            classes, factor)
            : elementwise_losses(of.loss_function, logits, wanted, gradient, classes, factor);
    for (int c = classes; c < ceil_div(classes, tile_columns) * tile_columns; ++c) {
      gradient[c] = 0;  // products run over it
    }
    if (keep) {
      float* kept =
          of.kept[block.step][of.layers - 1].dy + std::int64_t{block.row_of(row)} * classes;
      for (int c = 0; c < classes; ++c) {
        kept[c] = gradient[c];
      }
    }
  }
  return tasks;
}

/// By one warp, in double.
template <class Team>
__device__ int mean_loss(const Block<Team>& block, int taken) {
  if (block.of_team.first_task_after(taken) == 0) {
    double sum = 0;
    for (int row = block.lane; row < block.batch; row += warp_threads) {
      const float* losses = block.memory_of_row(row) + block.of.places.row_losses;
      sum += static_cast<double>(losses[block.place_of_row(row)]);
    }
    for (int apart = warp_threads / 2; apart > 0; apart /= 2) {
      sum += __shfl_down_sync(all_lanes, sum, apart);
    }
    if (block.lane == 0) {
      block.of.loss[block.run] = static_cast<float>(
          sum / (static_cast<double>(block.batch) * static_cast<double>(block.of.wanted_of_row)));
    }
  }
  return 1;
}

}  // namespace crossover::cuda::persistent
