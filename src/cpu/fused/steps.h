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

/// What all threads do between two places where they may wait for each other. What is shared is cut
/// into as many parts as there are threads.
struct Phase {
  enum class Kind {
    gather,
    forward,
    loss,
    backward,  ///< the gradient of a layer's inputs, then the update
    gradient,  ///< of a layer's inputs alone
    sum,       ///< a layer's gradients, as far as other parts update by them
    update,    ///< by the own gradients and those sums
  };
  Kind kind{};
  std::int64_t layer = 0;
  bool shared = false;  ///< by all threads; else the first one does it
  bool wait = false;    ///< for what the others did before

  /// Of a batch that is cut by samples: whether a thread needs its own alone.
  [[nodiscard]] bool of_samples() const { return kind != Kind::backward && kind != Kind::update; }
};

/// The optimizer of a step.
struct Optimizer {
  float rate = 0;  ///< of gradient descent
  float momentum = 0, gradient_factor = 1;
  std::int32_t* time = nullptr;  ///< AdamW's; null without
  AdamWOptions adamw;
  UpdateTerms of_weights, of_biases;

  /// For the step that comes; AdamW's time is set forward.
  [[nodiscard]] Update next() const;
};

/// Samples that are trained together, and their matrices.
struct Samples {
  std::int64_t first = 0;  ///< in the batch
  Batch batch;
  float* inputs = nullptr;  ///< [features][stride]
  Loss loss;
  std::vector<Layer> layers;
};

struct FusedStep {
  const float* data = nullptr;  ///< [features][data_ld]; by rows [samples][data_ld]
  std::int64_t data_ld = 0;
  const std::int32_t* labels = nullptr;  ///< null where there are targets
  const float* targets = nullptr;        ///< [outputs][targets_ld]; likewise
  std::int64_t targets_ld = 0;
  std::int64_t summed_losses = 0;  ///< of which the step's loss is the mean
  float* losses = nullptr;         ///< of all runs
  /// The whole batch, of which parts are features, or one for each part: of each thread `chunks`.
  std::vector<Samples> samples;
  /// Of a thread's samples, which go through all layers chunk by chunk, so that they stay in a
  /// cache.
  int chunks = 1;
  Optimizer optimizer;
  std::vector<Phase> phases;

  [[nodiscard]] bool by_samples() const { return samples.size() > 1; }
};

/// One part of [0, count), which is cut at multiples of `unit`.
struct Part {
  std::int64_t begin, end;
};
Part part_of(std::int64_t count, std::int64_t unit, std::int64_t part, std::int64_t parts);

/// Whether the batches of all steps lie by rows (Batch): else those of none do.
bool lie_by_rows(const std::vector<DenseStep>& training);

/// Binds the steps of `training` to the arena's memory, or counts what they take. `memory` learns
/// where the tensors lie. `keep`: all of them, and so the parameters' gradients too. Throws
/// Unsupported where an optimizer treats layers differently.
std::vector<FusedStep> bind_steps(const Workload& workload, const std::vector<DenseStep>& training,
                                  int threads, bool keep, Arena& arena, Memory& memory);

}  // namespace crossover::cpu::fused
