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

namespace tailored {

struct TrainedLayer {
  TrainedTensor w, bias;
};

/// As PersistentArguments has them.
struct Arguments {  // NOLINTBEGIN(*-avoid-c-arrays): device code has no std::array
  TrainedLayer layer[most_layers];
  KeptLayer kept[most_layers];
  int batch[2] = {};  ///< of each step
  float loss_factor[2] = {};
  double mean_factor[2] = {};
  const std::int64_t* shifts = nullptr;
  const OrderedRun* order = nullptr;
  std::int64_t first = 0, end = 0;
  const float* inputs = nullptr;
  const std::int32_t* wanted = nullptr;
  float* loss = nullptr;
  SgdFactors<float> sgd{};
  MomentumFactors<float> momentum{};
  std::int32_t* time = nullptr;
  AdamWFactors<float> adamw{};
  AdamWClock<float> clock{};
};  // NOLINTEND(*-avoid-c-arrays)
static_assert(sizeof(Arguments) <= 4096, "what a kernel's parameters hold");

}  // namespace tailored
}  // namespace crossover::cuda
