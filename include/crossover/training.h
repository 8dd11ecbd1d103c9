// SPDX-License-Identifier: Apache-2.0
// From a Model to the Workload of one training epoch: forward, backward, update, for every batch.
#pragma once

#include <cstdint>

#include "crossover/model.h"
#include "crossover/step.h"

namespace crossover {

struct TrainingOptions {
  std::int64_t rows = 0;   ///< samples in the data set
  std::int64_t batch = 0;  ///< samples of a step; the last step of an epoch takes what is left
  Optimizer optimizer;
  std::int64_t accumulate =
      1;  ///< steps whose gradients, each of loss / accumulate, make one update
  Precision precision = Precision::f32;
  /// Of `ranks` processes that share each batch, `rank` takes the rows rank, rank + ranks ... of
  /// it, and the rows above count those of the whole. Its loss is the mean of its own rows; its
  /// gradients are weighted by their part of the batch, so that their sums over the ranks, which
  /// AllReduces make before each update, are the gradients of the whole batch.
  int ranks = 1, rank = 0;
  /// This process is all ranks, one after the other: each share is a step, of which the last one of
  /// a batch updates. The rows lie in the order in which they are trained.
  bool in_turn = false;
  /// So many networks train at once on the same rows, each with parameters of its own: each run
  /// stands in the order once for each copy, one behind the other, and each copy's steps have
  /// tensors of their own but for the rows and the losses. Those of copy 0 are numbered as if it
  /// were alone; each further copy has its own behind all before it, in the same order.
  std::int64_t copies = 1;
  /// All layers add to the gradients, which each update sets to zero behind it; else the first
  /// gradient of an update overwrites what was there.
  bool zero_gradients = false;
  /// Each epoch reads the rows in an order of its own: Workload::epoch.
  bool shuffle = false;
  std::int64_t bucket_bytes = 25 << 20;  ///< of gradients summed at once, as they become ready
  double loss_scale = 1024;  ///< of f16 only: its gradients are those of loss * loss_scale, so that
                             ///< small ones do not vanish; the optimizer divides them by it
};

/// How many of a batch's rows one of the ranks takes.
std::int64_t rows_of_rank(std::int64_t batch, int rank, int ranks);

/// One epoch over the rows in order. A frozen layer's parameters have neither gradient nor update,
/// and no gradient goes where nothing is trained. The last update of an epoch may cover fewer than
/// `accumulate` steps. Tensors: data "inputs" [rows, sample...] and "labels" [rows], parameters in
/// layer order (weight before bias), their gradients in the same order, optimizer states, and
/// "loss" [steps of the epoch]. Every operation stands by itself; fuse() joins neighbours. Throws
/// std::invalid_argument where layers do not fit together, or options are out of range.
/// In bf16 and f16, activations and their gradients are stored in that type. Each step begins with
/// Casts: of the parameters and of its batch, which are f32, as are the logits, the loss, gradients
/// of parameters and optimizer states. The bias of a last LinearLayer is used as it is.
Workload training_epoch(const Model& model, const TrainingOptions& options);

/// One use of a trained network: the forward pass of one batch, whose logits are the tensor
/// "outputs". There is nothing that only training needs: no labels, loss, gradients or states, no
/// dropout. Batch normalization has statistics that are fixed, so that it is one factor and one
/// offset for each channel (scale / sqrt(running variance + epsilon), and shift - running mean *
/// factor), which are its two parameters here: a Convolution of one pixel, each channel by itself.
/// In bf16 and f16 parameters are stored in that type. Throws as training_epoch() does.
Workload forward_pass(const Model& model, std::int64_t batch, Precision precision = Precision::f32);

/// The same computation with fewer operations: Linear, Convolution and BatchNorm take over the
/// activation behind them, LinearGrad, the gradients of pooling and BatchNormGrad the derivative of
/// the activation before them, BatchNorm a residual join behind it, and BatchNormGrad the sum of
/// two gradients before it. Of weights that nothing else reads or writes, as in a forward_pass(), a
/// Convolution takes over the factors and offsets of the channels behind it, as its weights and its
/// bias (Start). Tensors keep their numbers; some become unused.
Workload fuse(Workload workload);

/// Where a step trains with plain SGD and does not accumulate: a LinearGrad adds the update to the
/// weights, and to the bias, in the product that computes it. Their gradient tensors become unused;
/// the others hold updates; parameters and losses change by rounding only. Does nothing where the
/// loss is scaled for f16, because there the update is divided by the scale after the product.
/// `least_weights`: of a layer; smaller ones stay with the optimizer.
Workload fuse_update(Workload workload, std::int64_t least_weights = 0);

/// The first tensor of that name; throws std::out_of_range where there is none.
Id find(const Workload& workload, const std::string& name);

/// All tensors of one role, in order.
std::vector<Id> tensors_of(const Workload& workload, Role role);

/// The data set's views that a step reads, each once, in the order in which it does.
std::vector<Id> views_of(const Workload& workload, const Step& step);

/// How many numbers all parameters have, the frozen ones as well.
std::int64_t parameter_count(const Workload& workload);

}  // namespace crossover
