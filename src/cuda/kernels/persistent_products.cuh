// SPDX-License-Identifier: Apache-2.0
// Matrix products in shared memory, for the training kernel, and the updates that some of them end
// in.
#pragma once

#include "persistent_block.cuh"

namespace crossover::cuda::persistent {

// ---- The optimizers, on parameters and states in shared memory.

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

inline __device__ CROSSOVER_NO_INLINE void update4_by_adamw(const PersistentArguments& of,
                                                            const float* by_time, float keep,
                                                            float* at, float4 gradient, int count) {
  AdamWFactors<float> factors = of.adamw;
  factors.keep = keep;
  factors.step_size = by_time[0];
  factors.inverse_root_correction = by_time[1];
  update4(factors, at, of.places.parameters, gradient, count);
}

/// Updates parameters as soon as somebody has a gradient of some of them. Where the rows of a batch
/// are spread over several memories, that is a part of it, which is stored until add_up().
template <class Team>
class Updater {
 public:
  __device__ Updater(const Block<Team>& block, const TrainedTensor& of)
      : shared_(block.shared), of_(block.of), tensor_(of) {}

  /// The gradient of at most `count` of the four parameters that begin at `at`.
  __device__ void take(int at, const float4& gradient, int count) const {
    if constexpr (Team::is_spread) {
      store4(shared_ + of_.places.gradients + at,
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
    switch (of_.places.rule) {
      case KernelRule::adamw:
        return update4_by_adamw(of_, shared_ + of_.places.factors, tensor_.keep, place, gradient,
                                count);
      case KernelRule::momentum:
        return update4(of_.momentum, place, next, gradient, count);
      case KernelRule::sgd:
        return update4(of_.sgd, place, next, gradient, count);
    }
  }

 private:
  float* shared_;
  const PersistentArguments& of_;
  const TrainedTensor& tensor_;
};

/// The layer that has a parameter's place.
inline __device__ int layer_of(const PersistentArguments& of, int at) {
  int layer = 0;
  while (layer + 1 < of.layers && of.on_chip[layer + 1].w <= at) {
    ++layer;
  }
  return layer;
}

/// A vector of gradients to where the step's are kept.
inline __device__ void keep_gradient(const PersistentArguments& of, int layer, int at,
                                     const float4& gradient) {
  const OnChipLayer& place = of.on_chip[layer];
  const KeptLayer& kept = of.kept[layer];
  if (kept.dw == nullptr) {
    return;
  }
  if (at >= place.bias) {
    keep4(kept.dbias, at - place.bias, place.out, gradient);
    return;
  }
  const int row = (at - place.w) / place.in_next;
  if (row < place.out) {
    keep4(kept.dw + std::int64_t{row} * place.in, (at - place.w) % place.in_next, place.in,
          gradient);
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
    const PersistentLayer its = of.at(layer);
    Updater<Team>(block, at >= its.on_chip.bias ? its.bias : its.w).update(at, sum, tile_columns);
    for (int state = 0; state <= of.places.states; ++state) {
      const int place = at + state * of.places.parameters;
      const float4 v = load4(block.shared + place);
      for (int i = 1; i < memories; ++i) {
        store4(there(i) + place, v);
      }
    }
    if (keep) {
      keep_gradient(of, layer, at, sum);
    }
  }
  return tasks;
}

// ---- Products. All return how many warp tasks they were, and keep to the rows of the batch in the
// own memory.

template <class Of>
__device__ float4 each(const float4& a, const float4& b, const Of& of) {
  return {of(a.x, b.x), of(a.y, b.y), of(a.z, b.z), of(a.w, b.w)};
}

inline __device__ CROSSOVER_NO_INLINE float4 activate_otherwise(Activation activation, float4 v) {
  if (derivative_takes_input(activation)) {
    __builtin_unreachable();
  }
  return each(v, v, [=](float x, float) { return activate(activation, x); });
}

/// Of those whose result tells their derivative.
inline __device__ float4 activate4(Activation activation, const float4& v) {
  switch (activation) {
    case Activation::identity:
      return v;
    case Activation::relu:
      return each(v, v, [](float x, float) { return activate(Activation::relu, x); });
    default:
      return activate_otherwise(activation, v);
  }
}

inline __device__ CROSSOVER_NO_INLINE float4 times_derivative_otherwise(Activation activation,
                                                                        float4 dy, float4 y) {
  return each(dy, y,
              [=](float d, float at) { return times_derivative_from_result(activation, d, at); });
}

/// dy times the derivative, from the result y, of the same.
inline __device__ float4 times_derivative4(Activation activation, const float4& dy,
                                           const float4& y) {
  switch (activation) {
    case Activation::identity:
      return dy;
    case Activation::relu:
      return each(dy, y, [](float d, float at) {
        return times_derivative_from_result(Activation::relu, d, at);
      });
    default:
      return times_derivative_otherwise(activation, dy, y);
  }
}

/// Of the others, with their derivatives, of a vector in shared memory.
inline __device__ CROSSOVER_NO_INLINE void activate_in_place(Activation activation, float* y,
                                                             float* slope) {
  if (!derivative_takes_input(activation)) {
    __builtin_unreachable();
  }
  CROSSOVER_NO_UNROLL
  for (int c = 0; c < tile_columns; ++c) {
    const float sum = y[c];
    y[c] = activate(activation, sum);
    slope[c] = times_derivative(activation, 1.0F, sum);
  }
}

/// A layer forward, y = activation(x wT + bias), or the gradient of its input, dx = (dy w) times
/// the derivative of the activation that made x. Both sum along the rows of their first factor.
/// A thread's rows lie row_tiles apart, so that its neighbours read neighbouring rows, from
/// different banks; the lanes of a warp that share columns read the same vectors of w at once.
template <int rows, bool backward, bool keep, class Team>
__device__ int row_product(const Block<Team>& block, const PersistentLayer& of, const Job& job,
                           int taken) {
  const OnChipLayer& layer = of.on_chip;
  const int columns = backward ? layer.in : layer.out;
  const int column_tiles = backward ? layer.in_tiles : layer.out_tiles;
  const int terms = backward ? layer.out : layer.in;
  const float* x = block.shared + block.x(layer, job.layer);
  const float* a = backward ? block.shared + layer.dy : x;
  const float* w = block.shared + layer.w;
  float* result = block.shared + (backward ? layer.dx : layer.y);
  const int a_next = backward ? layer.out_next : layer.in_next;
  const int w_next = layer.in_next;
  const int result_next = backward ? layer.in_next : layer.out_next;
  const int lanes = 1 << job.lanes_log2;
  const int own_rows = block.rows();
  const int row_tiles = ceil_div(block.most_rows, rows);
  const int tiles = row_tiles * column_tiles;
  const Divider place_by{job.divider_factor, job.divider_shift};
  const int tasks = tasks_of(tiles, job.lanes_log2);
  for (int task = block.of_memory.first_task_after(taken); task < tasks;
       task += block.of_memory.count) {
    const Share share = share_of(task, block.lane, job.lanes_log2, tiles);
    const int column_tile = place_by(share.tile);
    const int column = column_tile * tile_columns;
    const int row = share.tile - column_tile * row_tiles;
    float4 sum[rows] = {};
    for (int k = share.part * 4; k < terms; k += lanes * 4) {
      float4 factors[4];  // of dx four rows of w, of y four columns of wT
      CROSSOVER_UNROLL
      for (int i = 0; i < 4; ++i) {
        factors[i] = load4(w + (backward ? (k + i) * w_next + column : (column + i) * w_next + k));
      }
      CROSSOVER_UNROLL
      for (int r = 0; r < rows; ++r) {
        const float4 left = load4(a + (row + r * row_tiles) * a_next + k);
        if (backward) {
          add_product(sum[r], left.x, factors[0]);
          add_product(sum[r], left.y, factors[1]);
          add_product(sum[r], left.z, factors[2]);
          add_product(sum[r], left.w, factors[3]);
        } else {
          sum[r].x = dot(left, factors[0], sum[r].x);
          sum[r].y = dot(left, factors[1], sum[r].y);
          sum[r].z = dot(left, factors[2], sum[r].z);
          sum[r].w = dot(left, factors[3], sum[r].w);
        }
      }
    }
    sum_over_lanes(sum, lanes);
    CROSSOVER_UNROLL
    for (int r = 0; r < rows; ++r) {
      const int at = row + r * row_tiles;
      if (!share.exists || at >= own_rows || !ends_with(r, share.part, lanes)) {
        continue;
      }
      const int place = at * result_next + column;
      const auto keep_in = [&](float* kept, const float4& v) {
        keep4(kept + std::int64_t{block.row_of(at)} * columns, column, columns, v);
      };
      // Most have ReLU or nothing, which a comparison tells.
      const Activation activation = backward ? layer.x_activation : layer.activation;
      const bool by_slope = activation > Activation::relu && derivative_takes_input(activation);
      float4 v = sum[r];
      if (!backward) {
        const float4 bias = load4(block.shared + layer.bias + column);
        v = {v.x + bias.x, v.y + bias.y, v.z + bias.z, v.w + bias.w};
      }
      if (keep && by_slope) {
        keep_in(backward ? block.of.kept[job.layer].product : block.of.kept[job.layer].sum, v);
      }
      if (backward && by_slope) {
        const float4 slope = load4(block.shared + layer.x_slope + place);
        v = {v.x * slope.x, v.y * slope.y, v.z * slope.z, v.w * slope.w};
      } else if (backward) {
        v = times_derivative4(layer.x_activation, v, load4(x + place));
      } else if (!by_slope) {
        v = activate4(layer.activation, v);
      }
      store4(result + place, v);
      if (!backward && by_slope) {
        activate_in_place(layer.activation, result + place, block.shared + layer.slope + place);
        v = load4(result + place);
      }
      if (keep) {
        keep_in(backward ? block.of.kept[job.layer - 1].dy : block.of.kept[job.layer].y, v);
      }
    }
  }
  return tasks;
}

/// The gradient of a layer's weights, dyT x, and their update. Sums over the rows of both factors.
template <int rows, bool keep, class Team>
__device__ int weight_gradient(const Block<Team>& block, const PersistentLayer& of, const Job& job,
                               int taken) {
  const OnChipLayer& layer = of.on_chip;
  const float* x = block.shared + block.x(layer, job.layer);
  const float* dy = block.shared + layer.dy;
  const int own_rows = block.rows();
  const int x_next = layer.in_next;
  const int dy_next = layer.out_next;
  const int lanes = 1 << job.lanes_log2;
  const int column_tiles = layer.in_tiles;
  const int tiles = ceil_div(layer.out, rows) * column_tiles;
  const Divider place_by{job.divider_factor, job.divider_shift};
  const int tasks = tasks_of(tiles, job.lanes_log2);
  const Updater<Team> updater(block, of.w);
  for (int task = block.of_memory.first_task_after(taken); task < tasks;
       task += block.of_memory.count) {
    const Share share = share_of(task, block.lane, job.lanes_log2, tiles);
    const int row_tile = place_by(share.tile);
    const int out = row_tile * rows;
    const int in = (share.tile - row_tile * column_tiles) * tile_columns;
    float4 sum[rows] = {};
    for (int b = share.part; b < own_rows; b += lanes) {
      const float4 right = load4(x + b * x_next + in);
      const float* left = dy + b * dy_next + out;
      if constexpr (rows == 4) {
        const float4 four = load4(left);
        add_product(sum[0], four.x, right);
        add_product(sum[1], four.y, right);
        add_product(sum[2], four.z, right);
        add_product(sum[3], four.w, right);
      } else {
        CROSSOVER_UNROLL
        for (int r = 0; r < rows; ++r) {
          add_product(sum[r], left[r], right);
        }
      }
    }
    sum_over_lanes(sum, lanes);
    CROSSOVER_UNROLL
    for (int r = 0; r < rows; ++r) {
      if (share.exists && out + r < layer.out && ends_with(r, share.part, lanes)) {
        updater.take(layer.w + (out + r) * x_next + in, sum[r], layer.in - in);
        if (keep && !Team::is_spread && block.of.kept[job.layer].dw != nullptr) {
          keep4(block.of.kept[job.layer].dw + static_cast<std::int64_t>(out + r) * layer.in, in,
                layer.in, sum[r]);
        }
      }
    }
  }
  return tasks;
}

/// The gradient of a layer's bias, the column sums of dy, and the bias's update.
template <bool keep, class Team>
__device__ int bias_gradient(const Block<Team>& block, const PersistentLayer& of, const Job& job,
                             int taken) {
  const OnChipLayer& layer = of.on_chip;
  const float* dy = block.shared + layer.dy;
  const int own_rows = block.rows();
  const int dy_next = layer.out_next;
  const int lanes = 1 << job.lanes_log2;
  const int tiles = layer.out_tiles;
  const int tasks = tasks_of(tiles, job.lanes_log2);
  const Updater<Team> updater(block, of.bias);
  for (int task = block.of_memory.first_task_after(taken); task < tasks;
       task += block.of_memory.count) {
    const Share share = share_of(task, block.lane, job.lanes_log2, tiles);
    const int column = share.tile * tile_columns;
    float4 sum[1] = {};
    for (int b = share.part; b < own_rows; b += lanes) {
      add_product(sum[0], 1.0F, load4(dy + b * dy_next + column));
    }
    sum_over_lanes(sum, lanes);
    if (share.exists && share.part == 0) {
      updater.take(layer.bias + column, sum[0], layer.out - column);
      if (keep && !Team::is_spread && block.of.kept[job.layer].dbias != nullptr) {
        keep4(block.of.kept[job.layer].dbias, column, layer.out, sum[0]);
      }
    }
  }
  return tasks;
}

}  // namespace crossover::cuda::persistent
