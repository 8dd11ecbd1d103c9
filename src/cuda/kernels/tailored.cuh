// SPDX-License-Identifier: Apache-2.0
// A kernel that trains one network, whose sizes are constants of its code (Of::shape): one block,
// or a cluster of them, with everything in shared memory from the first run to the last. A sample
// belongs to a thread, or to a few lanes, from its forward pass to the gradients of its
// activations, with the weights read by all lanes at once; then the gradients of weights are summed
// in tiles over the batch, each by a few lanes, which update what they have summed. That is two
// barriers a step, and one for each layer each way where several lanes have a sample. The last warp
// has no samples: it adds up the losses of the run before, and computes what AdamW needs of the
// time.
//
// libraries/nvrtc_library.cpp compiles this text for the network at hand when a program is made;
// the emulation in tests/cuda_host compiles it for networks of the tests.
#pragma once

#include <cstdint>

#include "tailored_sample.cuh"

namespace crossover::cuda::tailored {

// ---- Gradients of weights, and their update.

/// Of a layer's weights: rows `row` to row + rows, columns likewise, of which the one behind `in`
/// is the bias.
struct alignas(16) Tile {
  int x, dy, x_next, dy_next;  ///< of its columns' inputs and its rows' gradients, of a sample
  int w, rows, columns, buffer;
  int layer, row, column, in;
};
static_assert(sizeof(Tile) == floats_of_tile * sizeof(float));

template <class Of, int l = 0>
__device__ Tile tile_of(int index) {
  constexpr Shape shape = Of::shape;
  constexpr Layout at = Step<Of>::at;
  if constexpr (l + 1 < shape.layers) {
    if (index >= shape.tiles(l)) {
      return tile_of<Of, l + 1>(index - shape.tiles(l));
    }
  }
  constexpr int in = shape.width[l];
  constexpr int out = shape.width[l + 1];
  constexpr int next = leading_dimension(in + 1);
  const int row = index / shape.column_tiles(l) * tile;
  const int column = index % shape.column_tiles(l) * tile;
  return {.x = at.x[l] + column,
          .dy = at.dy[l] + row,
          .x_next = next,
          .dy_next = leading_dimension(out),
          .w = at.w[l] + row * next + column,
          .rows = out - row < tile ? out - row : tile,
          .columns = in + 1 - column < tile ? in + 1 - column : tile,
          .buffer = l == 0 ? at.inputs : 0,
          .layer = l,
          .row = row,
          .column = column,
          .in = in};
}

/// What a lane has of a tile's sums when all its lanes have added up theirs: `count` of them from
/// `first` on.
template <int count>
struct Held {
  float v[count];
  int first;
};

/// Lanes halve what they have and give the other half away until each has `held` sums, which it
/// alone has, but for lanes beyond as many as there are sums. In a fixed order, so that a run
/// repeats.
template <int lanes, int have>
__device__ auto share_out(const Held<have>& sums, int part) {
  if constexpr (lanes == 1) {
    return sums;
  } else if constexpr (have == 1) {
    return share_out<lanes / 2>(
        Held<1>{{sums.v[0] + __shfl_xor_sync(whole_warp, sums.v[0], lanes / 2)}, sums.first}, part);
  } else {
    constexpr int half = have / 2;
    const bool upper = (part & (lanes / 2)) != 0;
    Held<half> kept{{}, sums.first + (upper ? half : 0)};
    CROSSOVER_UNROLL_BY(half)
    for (int i = 0; i < half; ++i) {
      const float given = upper ? sums.v[i] : sums.v[i + half];
      kept.v[i] =
          (upper ? sums.v[i + half] : sums.v[i]) + __shfl_xor_sync(whole_warp, given, lanes / 2);
    }
    return share_out<lanes / 2>(kept, part);
  }
}

/// A weight and its states, at `place` of shared memory.
template <class Of>
__device__ void update(const Step<Of>& step, int of_layer, int place, bool is_bias,
                       float gradient) {
  constexpr Shape shape = Of::shape;
  constexpr int next = Step<Of>::at.parameters;
  float* const w = step.shared + place;
  float none = 0;
  if constexpr (shape.rule == KernelRule::sgd) {
    step.of.sgd.update(*w, gradient, none, none);
  } else if constexpr (shape.rule == KernelRule::momentum) {
    step.of.momentum.update(*w, gradient, w[next], none);
  } else {
    constexpr int factors = Step<Of>::at.factors;
    const TrainedLayer& layer = step.of.layer[of_layer];
    AdamWFactors<float> by = step.of.adamw;
    by.keep = is_bias ? layer.bias.keep : layer.w.keep;
    by.step_size = step.shared[factors];
    by.inverse_root_correction = step.shared[factors + 1];
    by.update(*w, gradient, w[next], w[2 * next]);
  }
}

template <class Of>
__device__ void keep_gradient(const Step<Of>& step, int layer, int row, int column, int in,
                              float gradient) {
  if constexpr (Of::shape.keep) {
    const KeptLayer& kept = step.of.kept[layer];
    if (kept.dw != nullptr) {
      float* const to = column == in ? kept.dbias + row : kept.dw + row * in + column;
      *to = gradient;
    }
  }
}

template <class Of>
__device__ void weight_gradients(const Step<Of>& step, int thread) {
  constexpr Shape shape = Of::shape;
  constexpr int lanes = Step<Of>::at.tile_lanes;
  constexpr int tiles = shape.all_tiles();
  constexpr int table = Step<Of>::at.tiles;
  constexpr int at_once = shape.threads / lanes;
  const int part = thread % lanes;
  const int rows = step.rows();
  CROSSOVER_UNROLL_BY(1)
  for (int first = 0; first < tiles; first += at_once) {
    const int index = first + thread / lanes;
    const bool exists = index < tiles;  // shuffles are of whole warps
    const Tile of = reinterpret_cast<const Tile*>(step.shared + table)[exists ? index : tiles - 1];
    const float* x = step.shared + of.x + step.buffer * of.buffer;
    const float* dy = step.shared + of.dy;
    Held<tile * tile> sums{};
    CROSSOVER_UNROLL_BY(4)
    for (int b = part; b < rows; b += lanes) {
      const Four right = load_four(x + b * of.x_next);
      const Four left = load_four(dy + b * of.dy_next);
      CROSSOVER_UNROLL_BY(tile)
      for (int r = 0; r < tile; ++r) {
        CROSSOVER_UNROLL_BY(tile)
        for (int c = 0; c < tile; ++c) {
          sums.v[r * tile + c] = std::fma(left.v[r], right.v[c], sums.v[r * tile + c]);
        }
      }
    }
    const auto mine = share_out<lanes>(sums, part);
    constexpr int held = sizeof(mine.v) / sizeof(float);
    // Of lanes that have the same sum one goes on.
    if (!exists || (lanes > tile * tile && part % (lanes / (tile * tile)) != 0)) {
      continue;
    }
    CROSSOVER_UNROLL_BY(held)
    for (int i = 0; i < held; ++i) {
      const int r = (mine.first + i) / tile;
      const int c = (mine.first + i) % tile;
      if (r >= of.rows || c >= of.columns) {
        continue;
      }
      const int place = of.w + r * of.x_next + c;
      if constexpr (shape.blocks > 1) {
        constexpr int gradients = Step<Of>::at.gradients;
        step.shared[gradients + place] = mine.v[i];
      } else {
        update(step, of.layer, place, of.column + c == of.in, mine.v[i]);
        keep_gradient(step, of.layer, of.row + r, of.column + c, of.in, mine.v[i]);
      }
    }
  }
}

// ---- Of a cluster each vector of four parameters belongs to one block, which alone has its
// states.

template <class Of>
constexpr __device__ bool owns(int rank, int place) {
  return place / tile / Of::shape.threads % Of::shape.blocks == rank;
}

template <class Of, int l = 0>
__device__ void update_vector(const Step<Of>& step, int place, const Four& gradient) {
  constexpr Shape shape = Of::shape;
  if constexpr (l + 1 < shape.layers) {
    constexpr int end = Step<Of>::at.w[l + 1];
    if (place >= end) {
      return update_vector<Of, l + 1>(step, place, gradient);
    }
  }
  constexpr int in = shape.width[l];
  constexpr int out = shape.width[l + 1];
  constexpr int next = leading_dimension(in + 1);
  constexpr int begin = Step<Of>::at.w[l];
  const int row = (place - begin) / next;
  const int column = (place - begin) % next;
  CROSSOVER_UNROLL_BY(tile)
  for (int c = 0; c < tile; ++c) {
    if (row < out && column + c <= in) {
      update(step, l, place + c, column + c == in, gradient.v[c]);
      keep_gradient(step, l, row, column + c, in, gradient.v[c]);
    }
  }
}

/// Adds up the blocks' gradients of what this one owns, updates it and gives it to all.
template <class Of>
__device__ void add_up(const Step<Of>& step, int thread) {
  constexpr Shape shape = Of::shape;
  constexpr Layout at = Step<Of>::at;
  CROSSOVER_UNROLL_BY(1)
  for (int place = (step.rank * shape.threads + thread) * tile; place < at.parameters;
       place += shape.blocks * shape.threads * tile) {
    Four sum = load_four(step.shared + at.gradients + place);
    CROSSOVER_UNROLL_BY(shape.blocks)
    for (int i = 1; i < shape.blocks; ++i) {
      const Four other =
          load_four(shared_of(step.shared, (step.rank + i) % shape.blocks) + at.gradients + place);
      CROSSOVER_UNROLL_BY(tile)
      for (int c = 0; c < tile; ++c) {
        sum.v[c] += other.v[c];
      }
    }
    update_vector(step, place, sum);
    const Four updated = load_four(step.shared + place);
    CROSSOVER_UNROLL_BY(shape.blocks)
    for (int i = 1; i < shape.blocks; ++i) {
      float* const there = shared_of(step.shared, (step.rank + i) % shape.blocks);
      *reinterpret_cast<Four*>(there + place) = updated;
    }
  }
}

// ---- What the last warp does beside the samples.

/// Of a run's batch, in double, by a cluster's first block.
template <class Of>
__device__ void mean_loss(const Step<Of>& step, int lane) {
  constexpr Layout at = Step<Of>::at;
  if (step.rank > 0) {
    return;
  }
  float* const losses = step.shared + at.row_losses + step.buffer * at.row_losses_next;
  double sum = 0;
  CROSSOVER_UNROLL_BY(1)
  for (int block = 0; block < Of::shape.blocks; ++block) {
    const float* there = block == 0 ? losses : shared_of(losses, block);
    for (int row = lane; row < step.rows_of(block); row += warp) {
      sum += static_cast<double>(there[row]);
    }
  }
  CROSSOVER_UNROLL_BY(5)
  for (int apart = warp / 2; apart > 0; apart /= 2) {
    sum += __shfl_down_sync(whole_warp, sum, apart);
  }
  if (lane == 0) {
    shifted(step.of.loss, step.shift)[step.run] =
        static_cast<float>(sum * step.of.mean_factor[step.step]);
  }
}

template <class Of>
__device__ void factors(const Step<Of>& step) {
  if constexpr (Of::shape.rule == KernelRule::adamw) {
    constexpr int place = Step<Of>::at.factors;
    AdamWFactors<float> f = step.of.adamw;
    f.set_time(step.of.clock,
               *shifted(step.of.time, step.shift) + static_cast<int>(step.run - step.of.first) + 1);
    step.shared[place] = f.step_size;
    step.shared[place + 1] = f.inverse_root_correction;
  }
}

// ---- The training

/// The next batch, by all threads; each waits for what it copies.
template <class Of>
__device__ void load_batch(const Arguments& of, float* shared, const OrderedRun& run, int buffer,
                           int rank, int thread) {
  constexpr Shape shape = Of::shape;
  constexpr Layout at = Step<Of>::at;
  constexpr int in = shape.width[0];
  constexpr int next = leading_dimension(in + 1);
  constexpr int x_place = at.x[0];
  const int rows = (of.batch[run.step] + shape.blocks - 1 - rank) / shape.blocks;
  float* x = shared + x_place + buffer * at.inputs;
  const std::int64_t first_row = run.first_row - of.first_row;
  const float* inputs = of.inputs + first_row * in;
  CROSSOVER_UNROLL_BY(1)
  for (int i = thread; i < rows * in; i += shape.threads) {
    const int row = static_cast<int>(static_cast<unsigned>(i) / static_cast<unsigned>(in));
    const int column = i - row * in;
    copy_beside(x + row * next + column, inputs + (row * shape.blocks + rank) * in + column);
  }
  auto* wanted = reinterpret_cast<std::int32_t*>(shared + at.wanted + buffer * at.wanted_next);
  const std::int32_t* from = of.wanted + first_row * shape.wanted();
  CROSSOVER_UNROLL_BY(1)
  for (int i = thread; i < rows * shape.wanted(); i += shape.threads) {
    const int row = i / shape.wanted();
    copy_beside(wanted + i, from + i + (row * (shape.blocks - 1) + rank) * shape.wanted());
  }
}

/// Calls part(in the device's memory, in shared memory, place of the parameter) for each number of
/// each layer's parameters and states, shared out over threads.
template <class Of, int l = 0, class Part>
__device__ void for_each_parameter(const Arguments& of, float* shared, std::int64_t shift,
                                   int thread, const Part& part) {
  constexpr Shape shape = Of::shape;
  if constexpr (l < shape.layers) {
    constexpr int in = shape.width[l];
    constexpr int out = shape.width[l + 1];
    constexpr int next = leading_dimension(in + 1);
    constexpr int place = Step<Of>::at.w[l];
    constexpr int all = Step<Of>::at.parameters;
    const TrainedLayer& layer = of.layer[l];
    CROSSOVER_UNROLL_BY(1)
    for (int i = thread; i < out * (in + 1); i += shape.threads) {
      const int row = i / (in + 1);
      const int column = i % (in + 1);
      const bool is_bias = column == in;
      const TrainedTensor& tensor = is_bias ? layer.bias : layer.w;
      const int from = is_bias ? row : row * in + column;
      const int to = place + row * next + column;
      part(shifted(tensor.values, shift)[from], shared[to], to);
      if constexpr (shape.states() > 0) {
        part(shifted(tensor.m, shift)[from], shared[to + all], to);
      }
      if constexpr (shape.states() > 1) {
        part(shifted(tensor.v, shift)[from], shared[to + 2 * all], to);
      }
    }
    for_each_parameter<Of, l + 1>(of, shared, shift, thread, part);
  }
}

/// The column of ones behind each layer's inputs.
template <class Of, int l = 0>
__device__ void set_ones(float* shared, int thread) {
  constexpr Shape shape = Of::shape;
  if constexpr (l < shape.layers) {
    constexpr int place = Step<Of>::at.x[l] + shape.width[l];
    constexpr int next = leading_dimension(shape.width[l] + 1);
    for (int row = thread; row < (l == 0 ? 2 : 1) * shape.batch; row += shape.threads) {
      shared[place + row * next] = 1;
    }
    set_ones<Of, l + 1>(shared, thread);
  }
}

template <class Of>
__device__ void begin(const Arguments& of, float* shared, std::int64_t shift, int thread) {
  constexpr Shape shape = Of::shape;
  constexpr Layout at = Step<Of>::at;
  for (int i = thread; i < at.floats; i += shape.threads) {
    shared[i] = 0;
  }
  __syncthreads();
  set_ones<Of>(shared, thread);
  for (int i = thread; i < shape.all_tiles(); i += shape.threads) {
    reinterpret_cast<Tile*>(shared + at.tiles)[i] = tile_of<Of>(i);
  }
  for_each_parameter<Of>(of, shared, shift, thread,
                         [](const float& from, float& to, int /*place*/) { to = from; });
}

/// By Shape::threads threads of a block with Layout::floats of shared memory, or of each of a
/// cluster, one for each copy of the training.
template <class Of>
__device__ void train(const Arguments& of, float* shared) {
  constexpr Shape shape = Of::shape;
  const int thread = static_cast<int>(threadIdx.x);
  const bool works = thread < shape.workers;
  const bool serves = thread >= shape.threads - warp;
  const int rank = shape.blocks > 1 ? cluster_rank() : 0;
  const auto copy = static_cast<int>(blockIdx.x) / shape.blocks;
  const std::int64_t shift = of.shifts == nullptr ? 0 : of.shifts[copy];
  begin<Of>(of, shared, shift, thread);
  OrderedRun now = of.order[of.first];
  load_batch<Of>(of, shared, now, 0, rank, thread);
  wait_for_copies();
  meet<Of>();
  int buffer = 0;
  int step_before = 0;
  CROSSOVER_UNROLL_BY(1)
  for (std::int64_t run = of.first; run < of.end; ++run) {
    const bool another = run + 1 < of.end;
    const OrderedRun next = of.order[another ? run + 1 : run];
    const Step<Of> step{of, shared, shift, run, static_cast<int>(now.step), buffer, rank};
    if (another) {
      load_batch<Of>(of, shared, next, 1 - buffer, rank, thread);
    }
    if (serves) {
      if (run > of.first) {
        mean_loss<Of>({of, shared, shift, run - 1, step_before, 1 - buffer, rank}, thread % warp);
      }
      if (thread % warp == 0) {
        factors(step);
      }
    }
    if constexpr (shape.lanes > 1) {
      const int row = thread / shape.lanes;
      pass(step, {row, thread % shape.lanes, works && row < step.rows()});
    } else if (works) {
      CROSSOVER_UNROLL_BY(1)
      for (int row = thread; row < step.rows(); row += shape.workers) {
        pass(step, {row, 0, true});
      }
    }
    __syncthreads();
    weight_gradients(step, thread);
    if constexpr (shape.blocks > 1) {
      cluster_barrier();
      add_up(step, thread);
    }
    wait_for_copies();
    meet<Of>();
    step_before = step.step;
    now = next;
    buffer = 1 - buffer;
  }
  if (serves) {
    mean_loss<Of>({of, shared, shift, of.end - 1, step_before, 1 - buffer, rank}, thread % warp);
  }
  for_each_parameter<Of>(of, shared, shift, thread, [&](float& to, const float& from, int place) {
    if (owns<Of>(rank, place)) {
      to = from;
    }
  });
  if (of.time != nullptr && thread == 0 && rank == 0) {
    *shifted(of.time, shift) += static_cast<std::int32_t>(of.end - of.first);
  }
  if constexpr (shape.blocks > 1) {
    cluster_barrier();  // its shared memory has been read
  }
}

}  // namespace crossover::cuda::tailored
