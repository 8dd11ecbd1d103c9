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
  const OnChipLayer& on_chip;
  const TrainedTensor& w;
  const TrainedTensor& bias;
};

struct PersistentArguments : TrainingArguments {
  OnChipLayer on_chip[most_on_chip_layers];
  OnChipStep step[most_on_chip_steps];
  OnChipPlaces places;
  float* workspace = nullptr;  // of a grid
  int memories_log2 = 0;       // of a cluster: two to which power blocks it has
  int layers = 0;
  int wanted_of_row = 1;
  LossFunction loss_function = LossFunction::cross_entropy;

  [[nodiscard]] CROSSOVER_HOST_DEVICE PersistentLayer at(int l) const {
    return {on_chip[l], layer[l].w, layer[l].bias};
  }
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
