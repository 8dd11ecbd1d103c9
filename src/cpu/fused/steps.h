// SPDX-License-Identifier: Apache-2.0
// The steps of a fused program, bound to memory: phases, each a part of every thread's work.
#pragma once

#include <cstdint>
#include <vector>

#include "crossover/backend.h"
#include "crossover/dense_training.h"
#include "kernels.h"
#include "memory.h"

namespace crossover::cpu::fused {

/// What all threads do between two places where they may wait for each other.
struct Phase {
  enum class Kind { gather, forward, loss, backward };
  Kind kind{};
  std::int64_t layer = 0;
  bool shared = false;  ///< by all threads; else the first one does it
  bool wait = false;    ///< for what the others did before
};

/// The optimizer of a step.
struct Optimizer {
  float rate = 0;                ///< of plain gradient descent
  std::int32_t* time = nullptr;  ///< AdamW's; null without
  AdamWConstants constants;
  double weight_decay = 0, bias_decay = 0;

  /// For the step that comes; AdamW's time is set forward.
  [[nodiscard]] Update next() const;
};

struct FusedStep {
  Batch batch;
  const float* data = nullptr;  ///< [features][data_ld]
  std::int64_t data_ld = 0;
  float* inputs = nullptr;  ///< [features][stride]
  const std::int32_t* labels = nullptr;
  float* losses = nullptr;  ///< of all runs
  Loss loss;
  std::vector<Layer> layers;
  Optimizer optimizer;
  std::vector<Phase> phases;
};

/// Binds the steps of `training` to the arena's memory, or counts what they take. `memory` learns
/// where the tensors lie. `keep_gradients`: of the parameters, too. Throws Unsupported where an
/// optimizer treats layers differently.
std::vector<FusedStep> bind_steps(const Workload& workload, const std::vector<DenseStep>& training,
                                  int threads, bool keep_gradients, Arena& arena, Memory& memory);

}  // namespace crossover::cpu::fused
