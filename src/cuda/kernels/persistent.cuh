// SPDX-License-Identifier: Apache-2.0
// One kernel that trains a small network for many runs: one block of threads or a cluster, with
// parameters, optimizer states, activations and gradients in shared memory from the first run to
// the last; or as many blocks as there are multiprocessors, with all of it in a workspace.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "../base/site.h"
#include "../plan/launches/persistent_plan.h"
#include "../plan/launches/tailored_arguments.h"
#include "crossover/functions.h"
#include "crossover/operations/update.h"

namespace crossover::cuda {

/// A layer's place on the chip, and where it comes from and goes to.
struct PersistentLayer {
  OnChipLayer on_chip;
  TrainedTensor w, bias;
};

struct PersistentArguments {
  PersistentLayer layer[most_on_chip_layers];
  KeptLayer kept[most_on_chip_layers];
  OnChipStep step[most_on_chip_steps];
  float loss_factor[most_on_chip_steps] = {};   // scale / what the loss is the mean of
  double mean_factor[most_on_chip_steps] = {};  // 1 / that
  OnChipPlaces places;
  float* workspace = nullptr;  // of a grid
  int memories_log2 = 0;       // of a cluster: two to which power blocks it has
  int layers = 0;
  /// [copies] of the training: from what is the first one's to what is that one's, in bytes; null
  /// where there is one. Order and rows are the first one's.
  const std::int64_t* shifts = nullptr;
  const OrderedRun* order = nullptr;
  std::int64_t first = 0, end = 0;       // positions of the order
  const float* inputs = nullptr;         // [rows, in]
  const std::int32_t* wanted = nullptr;  // labels [rows], or targets [rows, outputs], which are f32
  int wanted_of_row = 1;
  LossFunction loss_function = LossFunction::cross_entropy;
  float* loss = nullptr;  // [runs]
  SgdFactors<float> sgd{};
  MomentumFactors<float> momentum{};
  std::int32_t* time = nullptr;  // AdamW's; null: another optimizer
  AdamWFactors<float> adamw{};
  AdamWClock<float> clock{};
};
static_assert(sizeof(PersistentArguments) <= 4096, "what a kernel's parameters hold");

/// How a kernel is launched.
struct TrainingShape {
  TeamKind team = TeamKind::block;
  int blocks = 1, threads = 0;
  int copies = 1;  ///< of the training, each by a team of its own; one by a grid
  std::int64_t shared_bytes = 0;
  bool keep = false;  ///< another kernel from the same source, which also writes what
                      ///< PersistentArguments::kept says
};

/// Must have been called before train() with the same shape. Lets blocks have as much shared memory
/// as the device does, however little the shape needs: the last call counts, and another Program
/// may launch the same kernel with more.
void prepare_training(const TrainingShape& shape, std::int64_t most_shared_bytes);

/// How many clusters of that size, with that much shared memory in each block, the device runs at
/// once.
int count_training_clusters(int blocks, int threads, std::int64_t shared_bytes);

/// A grid needs a workspace, a cluster its memories_log2.
void train(cudaStream_t stream, const PersistentArguments& arguments, const TrainingShape& shape);

}  // namespace crossover::cuda
