// SPDX-License-Identifier: Apache-2.0
// The optimizers, on parameters and states in shared memory.
#pragma once

#include "persistent_block.cuh"

namespace crossover::cuda::persistent {

/// By any rule, the first `count` of four parameters, whose states lie `next` floats apart. What is
/// beyond stays as it is.
template <class Factors>
__device__ void update4(const Factors& factors, float* at, int next, const float4& gradient,
                        int count) {
  const float g[tile_columns] = {gradient.x, gradient.y, gradient.z, gradient.w};
  const float4 before = load4(at);
  float w[tile_columns] = {before.x, before.y, before.z, before.w};
  CROSSOVER_UNROLL
  for (int c = 0; c < tile_columns; ++c) {
    if (c < count) {
      factors.update(w[c], g[c], at[next + c], at[2 * next + c]);
    }
  }
  store4(at, {w[0], w[1], w[2], w[3]});
}

inline __device__ CROSSOVER_NO_INLINE void update4_by_adamw(AdamWFactors<float> factors, float* at,
                                                            int next, float4 gradient, int count) {
  update4(factors, at, next, gradient, count);
}

/// Updates parameters as soon as somebody has a gradient of some of them. Where the rows of a batch
/// are spread over several memories, that is a part of it, which is stored until add_up().
template <class Team>
class Updater {
 public:
  __device__ Updater(const Block<Team>& block, float keep)
      : shared_(block.shared),
        of_(block.of),
        gradients_(block.of.places.gradients),
        factors_(block.of.adamw) {
    if (block.of.places.states == states_of_adamw) {
      factors_.keep = keep;
      factors_.step_size = shared_[block.of.places.factors];
      factors_.inverse_root_correction = shared_[block.of.places.factors + 1];
    }
  }

  /// The gradient of at most `count` of the four parameters that begin at `at`.
  __device__ void take(int at, const float4& gradient, int count) const {
    if constexpr (Team::is_spread) {
      store4(shared_ + gradients_ + at,
             {gradient.x, count > 1 ? gradient.y : 0.0F, count > 2 ? gradient.z : 0.0F,
              count > 3 ? gradient.w : 0.0F});
    } else {
      update(at, gradient, count);
    }
  }

  /// What is beyond `count` must stay zero.
  __device__ void update(int at, const float4& gradient, int count) const {
    float* const place = shared_ + at;
    const int next = of_.places.parameters;
    if (of_.places.states == states_of_adamw) {
      update4_by_adamw(factors_, place, next, gradient, count);
    } else if (of_.places.states > 0) {
      update4(of_.momentum, place, next, gradient, count);
    } else {
      update4(of_.sgd, place, next, gradient, count);
    }
  }

 private:
  float* shared_;
  const PersistentArguments& of_;
  int gradients_;
  AdamWFactors<float> factors_;
};

/// The layer that has a parameter's place.
inline __device__ int layer_of(const PersistentArguments& of, int at) {
  int layer = 0;
  while (layer + 1 < of.layers && of.layer[layer + 1].on_chip.w <= at) {
    ++layer;
  }
  return layer;
}

/// A vector of gradients to where the step's are kept.
inline __device__ void keep_gradient(const PersistentArguments& of, int step, int layer, int at,
                                     const float4& gradient) {
  const OnChipLayer& place = of.layer[layer].on_chip;
  const KeptLayer& kept = of.kept[step][layer];
  if (kept.dw == nullptr) {
    return;
  }
  if (at >= place.bias) {
    keep4(kept.dbias, at - place.bias, place.out, gradient);
    return;
  }
  const int next = leading_dimension(place.in);
  const int row = (at - place.w) / next;
  if (row < place.out) {
    keep4(kept.dw + std::int64_t{row} * place.in, (at - place.w) % next, place.in, gradient);
  }
}

/// Of a team with several memories: a vector of parameters belongs to one thread, which adds up the
/// parts of its gradient, updates it, and gives it to all. Neighbours read and write vectors that
/// lie together. What tensors are filled up with has gradients of zero, and stays so.
template <bool keep, class Team>
__device__ int add_up(const Block<Team>& block, int taken) {
  const PersistentArguments& of = block.of;
  const int memories = 1 << block.memories_log2;
  const int vectors = of.places.parameters / tile_columns;
  const int tasks = ceil_div(vectors, warp_threads);
  const auto there = [&](int i) {  // each begins with itself, and has another one next
    return Team::memory_of(block.shared, (block.rank + i) & (memories - 1));
  };
  for (int task = block.of_team.first_task_after(taken); task < tasks;
       task += block.of_team.count) {
    const int at = (task * warp_threads + block.lane) * tile_columns;
    if (at >= of.places.parameters) {
      continue;
    }
    float4 sum = load4(block.shared + of.places.gradients + at);
    for (int i = 1; i < memories; ++i) {
      add_product(sum, 1.0F, load4(there(i) + of.places.gradients + at));
    }
    const int layer = layer_of(of, at);
    const PersistentLayer& its = of.layer[layer];
    Updater<Team>(block, (at >= its.on_chip.bias ? its.bias : its.w).keep)
        .update(at, sum, tile_columns);
    for (int state = 0; state <= of.places.states; ++state) {
      const int place = at + state * of.places.parameters;
      const float4 v = load4(block.shared + place);
      for (int i = 1; i < memories; ++i) {
        store4(there(i) + place, v);
      }
    }
    if (keep) {
      keep_gradient(of, block.step, layer, at, sum);
    }
  }
  return tasks;
}

}  // namespace crossover::cuda::persistent
