// SPDX-License-Identifier: Apache-2.0
// Launches, and copies between them through the device's memory, are most of what a small network's
// step takes when each operation is a kernel. Here a step is a list of jobs and barriers that one
// block works off, and what lies between two barriers is all that its warps wait for: twice the
// layers and one more to a step where memory allows it. Batches come in a step ahead, by
// asynchronous copies that no thread waits for until the step's end.
//
// A cluster's blocks each take rows of the batch, with a copy of the parameters, and meet where the
// gradients of the rows are added up: only there does anything pass between them.
//
// The same jobs can be done by all multiprocessors, on a workspace in the device's memory that the
// L2 cache holds, with barriers of the whole grid: each takes a microsecond or so, which a larger
// network's products outweigh.
#include "persistent.cuh"

#include <cuda_pipeline_primitives.h>

#include <cmath>

#include "persistent_block.cuh"
#include "persistent_products.cuh"

namespace crossover::cuda {
namespace persistent {

// ---- Who trains, and where: one block in its shared memory; a cluster's blocks in theirs, each
// with all parameters and with the rows of a batch that are its own; or all blocks of a cooperative
// launch in a workspace.

struct OneBlock {
  static constexpr bool exists = true;
  static constexpr bool is_spread = false;        ///< over several memories
  static constexpr bool has_power_of_two = true;  ///< of warps
  static __device__ float* memory(const PersistentArguments& /*of*/) { return dynamic_shared(); }
  /// Which of the trainings it does.
  static __device__ int copy_number(const PersistentArguments& /*of*/) {
    return static_cast<int>(blockIdx.x);
  }
  /// Of those that share a memory.
  static __device__ int thread() { return static_cast<int>(threadIdx.x); }
  static __device__ int threads() { return static_cast<int>(blockDim.x); }
  static __device__ void barrier() { __syncthreads(); }
  /// Of four bytes, which are there after wait_for_copies() and a barrier.
  template <class T>
  static __device__ void copy(T* to, const T* from) {
    __pipeline_memcpy_async(to, from, sizeof(T));
  }
  static __device__ void commit_copies() { __pipeline_commit(); }
  static __device__ void wait_for_copies() { __pipeline_wait_prior(0); }

  /// Which of the memories this one is, and two to which power there are.
  static __device__ int rank() { return 0; }
  static __device__ int memories_log2(const PersistentArguments& /*of*/) { return 0; }
  static __device__ float* memory_of(float* own, int /*rank*/) { return own; }
  static __device__ void barrier_of_all() { __syncthreads(); }
};

/// Its barriers make what any block wrote visible to all.
struct WholeGrid {
  static constexpr bool exists = true;
  static constexpr bool is_spread = false;
  static constexpr bool has_power_of_two = false;
  static __device__ float* memory(const PersistentArguments& of) { return of.workspace; }
  static __device__ int copy_number(const PersistentArguments& /*of*/) { return 0; }
  static __device__ int thread() { return static_cast<int>(thread_index()); }
  static __device__ int threads() { return static_cast<int>(thread_count()); }
  static __device__ void barrier() { grid_barrier(); }
  template <class T>
  static __device__ void copy(T* to, const T* from) {
    *to = *from;
  }
  static __device__ void commit_copies() {}
  static __device__ void wait_for_copies() {}
  static __device__ int rank() { return 0; }
  static __device__ int memories_log2(const PersistentArguments& /*of*/) { return 0; }
  static __device__ float* memory_of(float* own, int /*rank*/) { return own; }
  static __device__ void barrier_of_all() { grid_barrier(); }
};

/// Its blocks read each other's parts of gradients and losses of rows, and write each other's
/// parameters, between barriers of all.
struct Cluster : OneBlock {
  static constexpr bool exists = has_clusters;
  static constexpr bool is_spread = true;
  static __device__ int copy_number(const PersistentArguments& of) {
    return static_cast<int>(blockIdx.x) >> of.memories_log2;
  }
  static __device__ int rank() { return cluster_rank(); }
  static __device__ int memories_log2(const PersistentArguments& of) { return of.memories_log2; }
  static __device__ float* memory_of(float* own, int rank) { return shared_of(own, rank); }
  static __device__ void barrier_of_all() { cluster_barrier(); }
};

// ---- The loss of a batch in shared memory: see loss.cu for how it is computed and why so.

namespace {

/// The cross-entropy of a row, and `factor` times its gradient.
__device__ float cross_entropy(const float* logits, int label, float* gradient, int classes,
                               float factor) {
  const float at_label = logits[label];
  float largest = logits[0];
  CROSSOVER_NO_UNROLL
  for (int c = 1; c < classes; ++c) {
    largest = std::fmax(largest, logits[c]);
  }
  float others = 0;
  CROSSOVER_NO_UNROLL
  for (int c = 0; c < classes; ++c) {
    const float e = std::exp(logits[c] - largest);
    gradient[c] = e;
    others += c == label ? 0.0F : e;
  }
  const float normalized = factor / (others + std::exp(at_label - largest));
  CROSSOVER_NO_UNROLL
  for (int c = 0; c < classes; ++c) {
    gradient[c] = (c == label ? -others : gradient[c]) * normalized;
  }
  return at_label == largest
             ? std::log1p(others)
             : (largest - at_label) + std::log(others + std::exp(at_label - largest));
}

/// The sum over a row of an ElementwiseLoss, and `factor` times its gradient.
__device__ float elementwise_losses(LossFunction function, const float* logits,
                                    const float* targets, float* gradient, int outputs,
                                    float factor) {
  float sum = 0;
  CROSSOVER_NO_UNROLL
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
  const OnChipLayer& last = of.on_chip[of.layers - 1];
  const int classes = last.out;
  const int next = last.out_next;
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
    CROSSOVER_NO_UNROLL
    for (int c = classes; c < last.out_tiles * tile_columns; ++c) {
      gradient[c] = 0;  // products run over it
    }
    if (keep) {
      float* kept = of.kept[of.layers - 1].dy + std::int64_t{block.row_of(row)} * classes;
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
      shifted(block.of.loss, block.shift)[block.run] =
          static_cast<float>(sum * block.of.mean_factor[block.step]);
    }
  }
  return 1;
}

// ---- The training

/// The rows that are this memory's, into a buffer; the caller waits for it.
template <class Team>
__device__ void load_batch(const PersistentArguments& of, float* shared, const OrderedRun& run,
                           int buffer) {
  const OnChipLayer& first = of.on_chip[0];
  float* x = shared + first.x + buffer * of.places.inputs;
  auto* wanted =
      reinterpret_cast<std::int32_t*>(shared + of.places.wanted + buffer * of.places.wanted_next);
  const int rank = Team::rank();
  const int log2 = Team::memories_log2(of);
  const int rows = Block<Team>::rows_of(of.batch[run.step], rank, log2);
  const std::int64_t first_row = run.first_row - of.first_row;
  const float* inputs = of.inputs + first_row * first.in;
  CROSSOVER_NO_UNROLL
  for (int i = Team::thread(); i < rows * first.in; i += Team::threads()) {
    const int row = of.places.by_inputs(i);
    const int column = i - row * first.in;
    Team::copy(x + row * first.in_next + column,
               inputs + ((row << log2) + rank) * first.in + column);
  }
  const int each = of.wanted_of_row;
  const std::int32_t* wanted_from = of.wanted + first_row * each;
  CROSSOVER_NO_UNROLL
  for (int i = Team::thread(); i < rows * each; i += Team::threads()) {
    const int row = each == 1 ? i : i / each;
    Team::copy(wanted + i, wanted_from + ((row << log2) + rank) * each + (i - row * each));
  }
  Team::commit_copies();
}

/// A matrix in the device's memory, and its place on the chip, in the one direction or the other.
/// The way there, to each memory, also makes zeros of what it is filled up with to `room` rows of
/// vectors; the way back is shared out.
template <class Team>
__device__ void bring(float* on_chip, const float* from, int rows, int room, int columns) {
  const int next = leading_dimension(columns);
  for (int i = Team::thread(); i < room * next; i += Team::threads()) {
    const int row = i / next;
    const int column = i % next;
    on_chip[i] = row < rows && column < columns ? from[row * columns + column] : 0.0F;
  }
}
template <class Team>
__device__ void take(const PersistentArguments& of, float* to, const float* on_chip, int rows,
                     int columns) {
  const int next = leading_dimension(columns);
  const int log2 = Team::memories_log2(of);
  for (int i = (Team::thread() << log2) + Team::rank(); i < rows * columns;
       i += Team::threads() << log2) {
    to[i] = on_chip[i / columns * next + i % columns];
  }
}

/// Calls part(in the device's memory, on the chip, rows, room for rows, columns) for parameters and
/// states.
template <class Part>
__device__ void for_each_parameter(const PersistentArguments& of, float* shared, std::int64_t shift,
                                   const Part& part) {
  const int states = of.places.states;
  const int next = of.places.parameters;
  const auto with_states = [&](const TrainedTensor& tensor, float* on_chip, int rows, int room,
                               int columns) {
    part(shifted(tensor.values, shift), on_chip, rows, room, columns);
    if (states > 0) {
      part(shifted(tensor.m, shift), on_chip + next, rows, room, columns);
    }
    if (states > 1) {
      part(shifted(tensor.v, shift), on_chip + 2 * next, rows, room, columns);
    }
  };
  for (int l = 0; l < of.layers; ++l) {
    const PersistentLayer layer = of.at(l);
    const OnChipLayer& at = layer.on_chip;
    with_states(layer.w, shared + at.w, at.out, ceil_div(at.out, 4) * 4, at.in);
    with_states(layer.bias, shared + at.bias, 1, 1, at.out);
  }
}

/// The factors of AdamW that depend on time, for all that share a memory: by one lane, beside the
/// first product.
template <class Team>
__device__ int factors(const Block<Team>& block, int taken) {
  if (block.of_memory.first_task_after(taken) == 0 && block.lane == 0) {
    const PersistentArguments& of = block.of;
    AdamWFactors<float> f = of.adamw;
    f.set_time(of.clock,
               *shifted(of.time, block.shift) + static_cast<int>(block.run - of.first) + 1);
    block.shared[of.places.factors] = f.step_size;
    block.shared[of.places.factors + 1] = f.inverse_root_correction;
  }
  return 1;
}

template <int rows, bool keep, class Team>
__device__ int product(const Block<Team>& block, const Job& job, int taken) {
  const PersistentLayer layer = block.of.at(job.layer);
  switch (job.kind) {
    case Job::Kind::forward:
      return row_product<rows, false, keep>(block, layer, job, taken);
    case Job::Kind::dx:
      return row_product<rows, true, keep>(block, layer, job, taken);
    default:
      return weight_gradient<rows, keep>(block, layer, job, taken);
  }
}

template <bool keep, class Team>
__device__ int do_job(const Block<Team>& block, const Job& job, int taken) {
  switch (job.kind) {
    case Job::Kind::factors:
      return factors(block, taken);
    case Job::Kind::loss:
      return loss<keep>(block, taken);
    case Job::Kind::mean_loss:
      return mean_loss(block, taken);
    case Job::Kind::update:
      if constexpr (Team::is_spread) {
        return add_up<keep>(block, taken);
      }
      return 0;
    case Job::Kind::dbias:
      return bias_gradient<keep>(block, block.of.at(job.layer), job, taken);
    default:
      break;
  }
  switch (job.rows) {
    case 1:
      return product<1, keep>(block, job, taken);
    case 2:
      return product<2, keep>(block, job, taken);
    default:
      return product<4, keep>(block, job, taken);
  }
}

template <class Team>
__device__ Warps<Team::has_power_of_two> warps_of_memory() {
  return {Team::threads() / warp_threads, Team::thread() / warp_threads};
}
template <class Team>
__device__ Warps<Team::has_power_of_two> warps_of_team(const PersistentArguments& of) {
  const auto own = warps_of_memory<Team>();
  const int log2 = Team::memories_log2(of);
  return {own.count << log2, (own.number << log2) + Team::rank()};
}

template <class Team, bool keep>
__device__ void train(const PersistentArguments& of) {
  float* shared = Team::memory(of);
  const std::int64_t shift = of.shifts == nullptr ? 0 : of.shifts[Team::copy_number(of)];
  for_each_parameter(of, shared, shift,
                     [](const float* from, float* on_chip, int rows, int room, int columns) {
                       bring<Team>(on_chip, from, rows, room, columns);
                     });
  // What the batches' rows are filled up with is never written again.
  for (int i = Team::thread(); i < 2 * of.places.inputs; i += Team::threads()) {
    shared[of.on_chip[0].x + i] = 0;
  }
  if constexpr (Team::is_spread) {  // nor of the gradients'
    for (int i = Team::thread(); i < of.places.parameters; i += Team::threads()) {
      shared[of.places.gradients + i] = 0;
    }
  }
  Team::barrier();
  OrderedRun now = of.order[of.first];
  load_batch<Team>(of, shared, now, 0);
  Team::wait_for_copies();
  Team::barrier();
  int buffer = 0;
  for (std::int64_t run = of.first; run < of.end; ++run) {
    const bool another = run + 1 < of.end;
    const OrderedRun next = of.order[another ? run + 1 : run];
    const int step = static_cast<int>(now.step);
    const Block<Team> block{of,
                            shared,
                            warps_of_memory<Team>(),
                            warps_of_team<Team>(of),
                            shift,
                            Team::thread() % warp_threads,
                            Team::rank(),
                            Team::memories_log2(of),
                            run,
                            step,
                            of.batch[step],
                            of.step[step].rows,
                            buffer};
    int taken = 0;
    for (int j = 0; j < of.step[step].jobs; ++j) {
      const Job job = of.step[step].job[j];
      if (job.kind == Job::Kind::barrier || job.kind == Job::Kind::exchange) {
        if (j + 1 == of.step[step].jobs) {
          Team::wait_for_copies();  // each thread for its own, before all go on
        }
        job.kind == Job::Kind::barrier ? Team::barrier() : Team::barrier_of_all();
        taken = 0;
      } else if (job.kind == Job::Kind::load) {
        if (another) {
          load_batch<Team>(of, shared, next, 1 - buffer);
        }
      } else {
        taken += do_job<keep>(block, job, taken);
      }
    }
    now = next;
    buffer = 1 - buffer;
  }
  for_each_parameter(of, shared, shift,
                     [&](float* to, const float* on_chip, int rows, int /*room*/, int columns) {
                       take<Team>(of, to, on_chip, rows, columns);
                     });
  if (of.time != nullptr && Team::thread() == 0 && Team::rank() == 0) {
    *shifted(of.time, shift) += static_cast<std::int32_t>(of.end - of.first);
  }
}

/// One block of at most 512 threads to a multiprocessor, so that each may have 128 registers:
/// without the one, ptxas spills for generations before 90 to leave room for two.
template <class Team, bool keep>
__global__ void __launch_bounds__(512, 1)
    train_kernel(const __grid_constant__ PersistentArguments of) {
  if constexpr (Team::exists) {
    train<Team, keep>(of);
  }
}

/// Calls part(the kernel of that shape).
template <class Part>
void with_kernel(const TrainingShape& shape, const Part& part) {
  switch (shape.team) {
    case TeamKind::block:
      return part(shape.keep ? train_kernel<OneBlock, true> : train_kernel<OneBlock, false>);
    case TeamKind::cluster:
      return part(shape.keep ? train_kernel<Cluster, true> : train_kernel<Cluster, false>);
    case TeamKind::grid:
      return part(shape.keep ? train_kernel<WholeGrid, true> : train_kernel<WholeGrid, false>);
  }
}

Grid grid_of(const TrainingShape& shape) {
  return {static_cast<unsigned>(shape.blocks * shape.copies), static_cast<unsigned>(shape.threads),
          static_cast<unsigned>(shape.shared_bytes)};
}

}  // namespace
}  // namespace persistent

void prepare_training(const TrainingShape& shape, std::int64_t most_shared_bytes) {
  persistent::with_kernel(shape, [&](auto* kernel) {
    allow_shared_bytes(kernel, static_cast<unsigned>(most_shared_bytes));
  });
}

int count_training_clusters(int blocks, int threads, std::int64_t shared_bytes) {
  const TrainingShape shape{.team = TeamKind::cluster,
                            .blocks = blocks,
                            .threads = threads,
                            .shared_bytes = shared_bytes};
  constexpr int first_with_clusters = 90;
  int clusters = 0;
  persistent::with_kernel(shape, [&](auto* kernel) {
    if (generation_of_code(kernel) < first_with_clusters) {
      return;
    }
    allow_shared_bytes(kernel, static_cast<unsigned>(shared_bytes));
    clusters = count_clusters(kernel, persistent::grid_of(shape));
  });
  return clusters;
}

void train(cudaStream_t stream, const PersistentArguments& arguments, const TrainingShape& shape) {
  const Grid grid = persistent::grid_of(shape);
  persistent::with_kernel(shape, [&](auto* kernel) {
    switch (shape.team) {
      case TeamKind::block:
        return launch(kernel, grid, stream, arguments);
      case TeamKind::cluster:
        return launch_clusters(kernel, grid, static_cast<unsigned>(shape.blocks), stream,
                               arguments);
      case TeamKind::grid:
        return launch_cooperative(kernel, grid, stream, arguments);
    }
  });
}

}  // namespace crossover::cuda
