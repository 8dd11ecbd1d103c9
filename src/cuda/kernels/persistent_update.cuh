// SPDX-License-Identifier: Apache-2.0
// The optimizers, on parameters and states in shared memory.
#pragma once

#include "persistent_block.cuh"

namespace crossover::cuda::persistent {

/// Updates the parameters of one tensor as soon as somebody has a gradient of some of them. The
/// gradient itself is stored nowhere.
class Updater {
 public:
  __device__ Updater(const Block& block, float keep)
      : shared_(block.shared),
        states_(block.of.places.states),
        learning_rate_(block.of.learning_rate),
        factors_(block.of.adamw) {
    if (states_ > 0) {
      factors_.keep = keep;
      factors_.step_size = shared_[block.of.places.factors];
      factors_.inverse_root_correction = shared_[block.of.places.factors + 1];
    }
  }

  /// At most `count` of the four parameters that begin at `at`: what is beyond must stay zero.
  __device__ void update(int at, const float4& gradient, int count) const {
    const float g[tile_columns] = {gradient.x, gradient.y, gradient.z, gradient.w};
    const float4 before = load4(shared_ + at);
    float w[tile_columns] = {before.x, before.y, before.z, before.w};
    if (states_ > 0) {
      CROSSOVER_UNROLL
      for (int c = 0; c < tile_columns; ++c) {
        if (c < count) {
          adamw(w[c], g[c], shared_[at + states_ + c], shared_[at + 2 * states_ + c], factors_);
        }
      }
    } else {
      CROSSOVER_UNROLL
      for (int c = 0; c < tile_columns; ++c) {
        w[c] = c < count ? crossover::sgd(w[c], g[c], learning_rate_) : w[c];
      }
    }
    store4(shared_ + at, {w[0], w[1], w[2], w[3]});
  }

 private:
  float* shared_;
  int states_;
  float learning_rate_;
  AdamWFactors<float> factors_;
};

}  // namespace crossover::cuda::persistent
