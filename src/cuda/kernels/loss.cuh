// SPDX-License-Identifier: Apache-2.0
// Softmax and cross-entropy with its gradient, and the counter of runs that says where a loss is
// written.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "crossover/tensor.h"

namespace crossover::cuda {

/// See SoftmaxCrossEntropy in step.h.
struct LossArguments {
  const float* logits = nullptr;         // [rows, classes]
  const std::int32_t* labels = nullptr;  // [rows / time, time]
  void* dlogits = nullptr;               // [rows, classes]
  float* loss = nullptr;                 // [runs]; written at *run
  std::int64_t* run = nullptr;           // then counted on where `advance` is set
  float* row_losses = nullptr;           // [rows], scratch
  std::int64_t rows = 0, classes = 0;
  std::int64_t time = 1;  // rows lie time first: [time, rows / time]
  float factor = 0;       // scale / rows
  bool advance = false;
  std::int64_t runs = 1;  // behind the last of which `run` is 0 again
};
/// How a loss is divided.
struct LossThreads {
  int threads = 1;            // of a row: 1, a warp, or a block of whole warps, up to 1024
  bool in_one_block = false;  // not with a block for each row
};
/// The gradients, and in one block the mean loss; else the losses of the rows.
void softmax_cross_entropy(cudaStream_t stream, Type dlogits, const LossArguments& arguments,
                           const LossThreads& how);
/// Of the losses of rows that it left: loss, run, row_losses, rows and advance say all.
void mean_loss(cudaStream_t stream, const LossArguments& arguments);

void set_run(cudaStream_t stream, std::int64_t* run, std::int64_t value);
void advance_run(cudaStream_t stream, std::int64_t* run, std::int64_t runs);

}  // namespace crossover::cuda
