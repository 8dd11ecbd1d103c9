// SPDX-License-Identifier: Apache-2.0
// The parts of a training step of Linear layers, for whichever vector instructions this processor
// has (Google Highway).
//
// Samples lie along the lanes of vectors. A matrix of a batch is [features][stride]: a row of
// `stride` floats for each feature, of which the first `batch` are samples. So networks of any
// width fill the vectors, activation, loss and derivative need no lane of another sample, and the
// one layout of the weights, [in][ld], serves the products of all passes.
//
// Few samples would leave lanes idle; they lie by rows instead, with features along the lanes (see
// Batch and rows.cpp).
//
// What lies past the batch never counts: it starts from zeros and stays finite, and the loss's
// gradients are zero there.
#pragma once

#include <cstdint>

#include "crossover/activation.h"
#include "crossover/functions.h"
#include "crossover/operations/update.h"

namespace crossover::cpu::fused {

/// Extents of matrices in memory are multiples of it: a cache line, and no vector is longer.
inline constexpr std::int64_t floats_of_line = 16;

/// Features that are computed together: the least part of a layer that a thread can have.
inline constexpr std::int64_t tile = 4;

/// Samples that may lie by rows (Batch): with 16 lanes 8 would be faster so too, with 8 lanes or 4
/// no more than these.
inline constexpr std::int64_t few_samples = 4;

constexpr std::int64_t lines_of(std::int64_t floats) {
  return (floats + floats_of_line - 1) / floats_of_line;
}

/// So many floats in whole lines; of many lines an odd number, since a cache keeps lines at
/// distances of a power of two in the same few places.
constexpr std::int64_t whole_lines(std::int64_t floats) {
  const std::int64_t lines = lines_of(floats);
  constexpr std::int64_t many = 4;
  return floats_of_line * (lines > many ? lines | 1 : lines);
}

/// From the weights of an input to those of the next, which may be few.
constexpr std::int64_t leading_dimension(std::int64_t outputs) {
  return outputs <= tile ? tile : outputs <= 2 * tile ? 2 * tile : whole_lines(outputs);
}

/// Gradients of a layer's weights or biases where a batch is cut by samples: each part of it sums
/// over its own.
struct PartialSums {
  float* first = nullptr;   ///< those of the first part; null unless the batch is cut so
  std::int64_t stride = 0;  ///< floats from one part's to the next's
  int parts = 0, own = 0;
};

/// All but dy as of DenseLayer; x, y, slopes, dy and dx are as Batch says: [features][stride], or
/// by rows.
struct Layer {
  std::int64_t in = 0, out = 0;
  std::int64_t ld = 0;  ///< floats from the weights of an input to those of the next
  Activation activation = Activation::identity;
  Activation x_activation = Activation::identity;
  float* weights = nullptr;  ///< [in][ld]
  float* bias = nullptr;     ///< [out]
  const float* x = nullptr;
  float* y = nullptr;
  /// Where derivative_takes_input(): the activation's derivative, and that of x_activation; else
  /// null, and y and x tell it.
  float* slope = nullptr;
  const float* x_slope = nullptr;
  const float* dy = nullptr;
  float* dx = nullptr;       ///< null in the first layer
  float* sum = nullptr;      ///< [out][stride]; null unless it is to be kept
  float* product = nullptr;  ///< [in][stride]; likewise
  /// Copies of dy and dx that lie sample by sample, [stride][whole lines], for products over the
  /// samples. Null where a vector would hold few of their features.
  const float* dy_rows = nullptr;
  float* dx_rows = nullptr;
  float* dw = nullptr;     ///< [in][ld]; null unless the gradients are to be kept
  float* dbias = nullptr;  ///< likewise
  PartialSums dw_sums;     ///< each as the weights
  PartialSums dbias_sums;  ///< each as the bias
  /// AdamW's states, as the weights and as the bias; m alone: velocities; null with plain gradient
  /// descent.
  float *m = nullptr, *v = nullptr, *bias_m = nullptr, *bias_v = nullptr;
};

/// A layer of a network that is used. The samples lie as they come, one behind the other.
struct PassLayer {
  std::int64_t in = 0, out = 0;
  Activation activation = Activation::identity;
  /// Weights are [out][ld], a product over the inputs for each output; else [in][ld]. With it ld,
  /// y_stride and bias need no whole lines, and there may be no bias.
  bool by_inputs = false;
  std::int64_t ld = 0;
  std::int64_t x_stride = 0, y_stride = 0;  ///< of y whole lines
  const float* weights = nullptr;
  const float* bias = nullptr;  ///< whole lines
};

struct Batch {
  std::int64_t rows = 0;
  std::int64_t stride = 0;
  /// Few samples, which would leave lanes idle: all matrices are [rows][whole lines of features],
  /// with zeros behind the features of dy and dx; there is no stride.
  bool by_rows = false;
};

/// What an optimizer makes of a gradient.
struct Update {
  /// w -= rate * g, or times the velocity, which is momentum * velocity + factor * g.
  float rate = 0, momentum = 0, gradient_factor = 1;
  /// Where the layers have states: AdamW's factors now, of weights and of biases, which may decay
  /// differently.
  AdamWFactors<float> of_weights{}, of_biases{};
};

/// Labels or targets are from the batch's first sample on, readable up to `stride`.
struct Loss {
  LossFunction function = LossFunction::cross_entropy;
  std::int64_t classes = 0;              ///< or outputs
  const float* logits = nullptr;         ///< [classes][stride]
  const std::int32_t* labels = nullptr;  ///< null with another loss than cross-entropy
  /// [classes][targets_ld], or by rows [samples][targets_ld]; null with cross-entropy.
  const float* targets = nullptr;
  std::int64_t targets_ld = 0;
  float* dlogits = nullptr;  ///< [classes][stride]
  float factor = 0;          ///< of the gradients: scale / rows, or over all elements
};

/// Each computes a part, [begin, end) of what it says; parts may be computed at the same time.
struct Kernels {
  /// Copies the samples of the features from `data`, whose features lie `ld` apart; zeros behind.
  void (*gather)(const float* data, std::int64_t ld, const Batch& batch, float* x,
                 std::int64_t begin, std::int64_t end);
  /// y = activation(x wT + bias) of these outputs; begin is a multiple of `tile`.
  void (*forward)(const Layer& layer, const Batch& batch, std::int64_t begin, std::int64_t end);
  /// dlogits of the samples, and the sum of their losses, or of their elements'; begin is a
  /// multiple of a line.
  double (*loss)(const Loss& loss, const Batch& batch, std::int64_t begin, std::int64_t end);
  /// dx of these inputs; begin is a multiple of `tile`.
  void (*gradient)(const Layer& layer, const Batch& batch, std::int64_t begin, std::int64_t end);
  /// The own part of dw_sums of the weights of these inputs; begin is a multiple of `tile`.
  void (*sum)(const Layer& layer, const Batch& batch, std::int64_t begin, std::int64_t end);
  /// The own part of dbias_sums of these outputs; begin is a multiple of `tile`.
  void (*sum_bias)(const Layer& layer, const Batch& batch, std::int64_t begin, std::int64_t end);
  /// The update of the weights of these inputs, by the gradients of this batch and the sums of
  /// other parts; begin is a multiple of `tile`.
  void (*update)(const Layer& layer, const Batch& batch, const Update& update, std::int64_t begin,
                 std::int64_t end);
  /// Likewise of the biases of these outputs.
  void (*update_bias)(const Layer& layer, const Batch& batch, const Update& update,
                      std::int64_t begin, std::int64_t end);
  /// y = activation(x wT + bias) of so many samples.
  void (*pass)(const PassLayer& layer, const float* x, float* y, std::int64_t rows);
  const char* instructions;  ///< Highway's name of the target: "AVX3"
};

/// Those for the best instructions that this processor has and this build was made for.
Kernels best_kernels();

/// Likewise, for few samples, which lie by rows; without sums and pass. `ld` of the data is its
/// number of features. Parts begin at multiples of a line, those of the loss at any sample.
Kernels best_kernels_by_rows();

}  // namespace crossover::cpu::fused
