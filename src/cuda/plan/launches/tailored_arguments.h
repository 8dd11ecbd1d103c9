// SPDX-License-Identifier: Apache-2.0
// What kernels take that train dense networks for many runs. NVRTC compiles it, too.
#pragma once

#include <cstdint>

#include "crossover/operations/update_factors.h"
#include "ordered_run.h"
#include "tailored_shape.h"

namespace crossover::cuda {

/// A tensor of parameters in the device's memory, with AdamW's states and its 1 - learning rate *
/// weight decay; m is momentum's velocity, too.
struct TrainedTensor {
  float* values = nullptr;
  float* m = nullptr;
  float* v = nullptr;
  float keep = 1;
};

/// Where a step's tensors go in the device's memory, where they are kept, by launches of one run
/// each. No gradients of the parameters where the step updates in place.
struct KeptLayer {
  float* y = nullptr;
  float* dy = nullptr;
  float* dw = nullptr;
  float* dbias = nullptr;
  float* sum = nullptr;  // as DenseLayer has them
  float* product = nullptr;
};

struct TrainedLayer {
  TrainedTensor w, bias;
};

struct TrainingArguments {  // NOLINTBEGIN(*-avoid-c-arrays): device code has no std::array
  TrainedLayer layer[tailored::most_layers];
  KeptLayer kept[tailored::most_layers];
  int batch[tailored::most_steps] = {};           ///< of each step
  float loss_factor[tailored::most_steps] = {};   ///< scale / what the loss is the mean of
  double mean_factor[tailored::most_steps] = {};  ///< 1 / that
  /// [copies] of the training: from what is the first one's to what is that one's, in bytes; null
  /// where there is one. Order and rows are the first one's.
  const std::int64_t* shifts = nullptr;
  const OrderedRun* order = nullptr;
  std::int64_t first = 0, end = 0;       ///< positions of the order
  std::int64_t first_row = 0;            ///< of the data set that `inputs` and `wanted` begin with
  const float* inputs = nullptr;         ///< [rows, in]
  const std::int32_t* wanted = nullptr;  ///< labels [rows], or targets [rows, outputs] in f32
  float* loss = nullptr;                 ///< [runs]
  SgdFactors<float> sgd{};
  MomentumFactors<float> momentum{};
  std::int32_t* time = nullptr;  ///< AdamW's; null: another optimizer
  AdamWFactors<float> adamw{};
  AdamWClock<float> clock{};
};  // NOLINTEND(*-avoid-c-arrays)

namespace tailored {

using Arguments = TrainingArguments;
static_assert(sizeof(Arguments) <= 4096, "what a kernel's parameters hold");

}  // namespace tailored
}  // namespace crossover::cuda
