// SPDX-License-Identifier: Apache-2.0
// Launches, and copies between them through the device's memory, are most of what a small network's
// step takes when each operation is a kernel. Here a step is a list of jobs and barriers that one
// block works off, and what lies between two barriers is all that its warps wait for: twice the
// layers and one more to a step where memory allows it. Batches come in a step ahead, by
// asynchronous copies that no thread waits for until the step's end.
#include "persistent.cuh"

#include <cuda_pipeline_primitives.h>

#include "persistent_block.cuh"
#include "persistent_loss.cuh"
#include "persistent_products.cuh"

namespace crossover::cuda {
namespace persistent {
namespace {

/// Into a buffer; the caller waits for it.
__device__ void load_batch(const PersistentArguments& of, float* shared, const OnChipRun& run,
                           int buffer) {
  const OnChipLayer& first = of.layer[0].on_chip;
  const int next = leading_dimension(first.in);
  float* x = shared + first.x + buffer * of.places.inputs;
  float* labels = shared + of.places.labels + buffer * of.places.labels_next;
  const int batch = of.step[run.step].batch;
  const float* rows = of.inputs + run.first_row * first.in;
  for (int i = static_cast<int>(threadIdx.x); i < batch * first.in;
       i += static_cast<int>(blockDim.x)) {
    __pipeline_memcpy_async(x + i / first.in * next + i % first.in, rows + i, sizeof(float));
  }
  for (int b = static_cast<int>(threadIdx.x); b < batch; b += static_cast<int>(blockDim.x)) {
    __pipeline_memcpy_async(labels + b, of.labels + run.first_row + b, sizeof(std::int32_t));
  }
  __pipeline_commit();
}

/// A matrix in the device's memory, and its place on the chip, in the one direction or the other.
/// The way there also makes zeros of what it is filled up with to `room` rows of vectors.
__device__ void bring(float* on_chip, const float* from, int rows, int room, int columns) {
  const int next = leading_dimension(columns);
  for (int i = static_cast<int>(threadIdx.x); i < room * next; i += static_cast<int>(blockDim.x)) {
    const int row = i / next;
    const int column = i % next;
    on_chip[i] = row < rows && column < columns ? from[row * columns + column] : 0.0F;
  }
}
__device__ void take(float* to, const float* on_chip, int rows, int columns) {
  const int next = leading_dimension(columns);
  for (int i = static_cast<int>(threadIdx.x); i < rows * columns;
       i += static_cast<int>(blockDim.x)) {
    to[i] = on_chip[i / columns * next + i % columns];
  }
}

/// Calls part(in the device's memory, on the chip, rows, room for rows, columns) for parameters and
/// states.
template <class Part>
__device__ void for_each_parameter(const PersistentArguments& of, float* shared, const Part& part) {
  for (int l = 0; l < of.layers; ++l) {
    const PersistentLayer& layer = of.layer[l];
    const OnChipLayer& at = layer.on_chip;
    const int room = ceil_div(at.out, 4) * 4;
    part(layer.w, shared + at.w, at.out, room, at.in);
    part(layer.bias, shared + at.bias, 1, 1, at.out);
    if (of.places.states > 0) {
      float* m = shared + of.places.states;
      float* v = m + of.places.states;
      part(layer.w_m, m + at.w, at.out, room, at.in);
      part(layer.w_v, v + at.w, at.out, room, at.in);
      part(layer.bias_m, m + at.bias, 1, 1, at.out);
      part(layer.bias_v, v + at.bias, 1, 1, at.out);
    }
  }
}

/// The factors of AdamW that depend on time, for all: by one lane, beside the first product.
__device__ int factors(const Block& block, int taken) {
  if (block.first_task(taken) == 0 && block.lane == 0) {
    const PersistentArguments& of = block.of;
    AdamWFactors<float> f = of.adamw;
    set_time(f, of.clock, *of.time + static_cast<int>(block.run - of.first) + 1);
    block.shared[of.places.factors] = f.step_size;
    block.shared[of.places.factors + 1] = f.inverse_root_correction;
  }
  return 1;
}

template <int rows, bool keep>
__device__ int product(const Block& block, const Job& job, int taken) {
  const PersistentLayer& layer = block.of.layer[job.layer];
  switch (job.kind) {
    case Job::Kind::forward:
      return row_product<rows, false, keep>(block, layer, job, taken);
    case Job::Kind::dx:
      return row_product<rows, true, keep>(block, layer, job, taken);
    default:
      return weight_gradient<rows, keep>(block, layer, job, taken);
  }
}

template <bool keep>
__device__ int do_job(const Block& block, const Job& job, int taken) {
  switch (job.kind) {
    case Job::Kind::factors:
      return factors(block, taken);
    case Job::Kind::loss:
      return loss<keep>(block, taken);
    case Job::Kind::mean_loss:
      return mean_loss(block, taken);
    case Job::Kind::dbias:
      return bias_gradient<keep>(block, block.of.layer[job.layer], job, taken);
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

/// One block of at most 512 threads to a multiprocessor, so that each may have 128 registers:
/// without the one, ptxas spills for generations before 90 to leave room for two.
template <bool keep>
__global__ void __launch_bounds__(512, 1)
    train_kernel(const __grid_constant__ PersistentArguments of) {
  float* shared = dynamic_shared();
  for_each_parameter(of, shared,
                     [](const float* from, float* on_chip, int rows, int room, int columns) {
                       bring(on_chip, from, rows, room, columns);
                     });
  // What the batches' rows are filled up with is never written again.
  for (int i = static_cast<int>(threadIdx.x); i < 2 * of.places.inputs;
       i += static_cast<int>(blockDim.x)) {
    shared[of.layer[0].on_chip.x + i] = 0;
  }
  __syncthreads();
  OnChipRun now = of.order[of.first];
  load_batch(of, shared, now, 0);
  __pipeline_wait_prior(0);
  __syncthreads();
  int buffer = 0;
  for (std::int64_t run = of.first; run < of.end; ++run) {
    const bool another = run + 1 < of.end;
    const OnChipRun next = of.order[another ? run + 1 : run];
    const int step = static_cast<int>(now.step);
    const Block block{of,
                      shared,
                      static_cast<int>(blockDim.x) / warp_threads,
                      static_cast<int>(threadIdx.x) / warp_threads,
                      static_cast<int>(threadIdx.x) % warp_threads,
                      run,
                      step,
                      of.step[step].batch,
                      buffer};
    int taken = 0;
    for (int j = 0; j < of.step[step].jobs; ++j) {
      const Job job = of.step[step].job[j];
      if (job.kind == Job::Kind::barrier) {
        if (j + 1 == of.step[step].jobs) {
          __pipeline_wait_prior(0);  // each thread for its own copies, before all go on
        }
        __syncthreads();
        taken = 0;
      } else if (job.kind == Job::Kind::load) {
        if (another) {
          load_batch(of, shared, next, 1 - buffer);
        }
      } else {
        taken += do_job<keep>(block, job, taken);
      }
    }
    now = next;
    buffer = 1 - buffer;
  }
  for_each_parameter(of, shared,
                     [](float* to, const float* on_chip, int rows, int /*room*/, int columns) {
                       take(to, on_chip, rows, columns);
                     });
  if (of.places.states > 0 && threadIdx.x == 0) {
    *of.time += static_cast<std::int32_t>(of.end - of.first);
  }
}

}  // namespace
}  // namespace persistent

void prepare_training(std::int64_t shared_bytes) {
  const auto bytes = static_cast<unsigned>(shared_bytes);
  allow_shared_bytes(persistent::train_kernel<false>, bytes);
  allow_shared_bytes(persistent::train_kernel<true>, bytes);
}

void train(cudaStream_t stream, const PersistentArguments& arguments, int threads,
           std::int64_t shared_bytes, bool keep) {
  const Grid grid{1, static_cast<unsigned>(threads), static_cast<unsigned>(shared_bytes)};
  if (keep) {
    launch(persistent::train_kernel<true>, grid, stream, arguments);
  } else {
    launch(persistent::train_kernel<false>, grid, stream, arguments);
  }
}

}  // namespace crossover::cuda
