// SPDX-License-Identifier: Apache-2.0
// What becomes of gradients: their sum over ranks, and the update of parameters.
#pragma once

#include <cstdint>
#include <vector>

#include "crossover/operation.h"

namespace crossover {

// ---- Plain stochastic gradient descent.

/// w -= learning_rate * (gradient_factor * g) for each parameter. All are f32;
/// gradients may be of 16 bits.
struct Sgd {
  std::vector<Id> parameters, gradients;
  double learning_rate = 0;
  /// Undoes the loss's `scale` in the gradients. A gradient that is not finite makes
  /// its parameter not finite.
  double gradient_factor = 1;

  static constexpr const char* name = "Sgd";
  static constexpr OpCategory category = OpCategory::update;
  template <class See>
  void describe(See& see) const {
    see.reads("parameters", parameters);
    see.writes("parameters", parameters);
    see.reads("gradients", gradients);
    see.value("learning_rate", learning_rate);
    see.value("gradient_factor", gradient_factor);
  }
  [[nodiscard]] static std::vector<const std::vector<Id>*> states() { return {}; }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

// ---- Stochastic gradient descent with momentum.

/// velocity = momentum * velocity + g; w -= learning_rate * velocity, for each parameter: PyTorch's
/// SGD with momentum. g stands for gradient_factor * gradient, as in Sgd. All are f32; gradients
/// may be of 16 bits.
struct Momentum {
  std::vector<Id> parameters, gradients, velocities;
  double learning_rate = 0, momentum = 0;
  double gradient_factor = 1;

  static constexpr const char* name = "Momentum";
  static constexpr OpCategory category = OpCategory::update;
  template <class See>
  void describe(See& see) const {
    see.reads("parameters", parameters);
    see.writes("parameters", parameters);
    see.reads("velocities", velocities);
    see.writes("velocities", velocities);
    see.reads("gradients", gradients);
    see.value("learning_rate", learning_rate);
    see.value("momentum", momentum);
    see.value("gradient_factor", gradient_factor);
  }
  [[nodiscard]] std::vector<const std::vector<Id>*> states() const { return {&velocities}; }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

// ---- Adam with decoupled weight decay.

/// Adam (Kingma & Ba 2015) where nothing decays; else AdamW (Loshchilov & Hutter 2019) as PyTorch
/// computes it, decay decoupled: w *= 1 - lr * decay; m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g
/// g; w -= lr / (1 - b1^t) * m / (sqrt(v) / sqrt(1 - b2^t) + epsilon). g stands for gradient_factor
/// * gradient, as in Sgd. All f32, but for gradients, which may be of 16 bits, and `step`, which is
/// t: one i32 that the operation increments before use.
struct AdamW {
  std::vector<Id> parameters, gradients, m, v;
  std::vector<double> weight_decay;  ///< one for each parameter
  Id step = none;
  double learning_rate = 0, beta1 = 0, beta2 = 0, epsilon = 0;
  double gradient_factor = 1;

  static constexpr const char* name = "AdamW";
  static constexpr OpCategory category = OpCategory::update;
  template <class See>
  void describe(See& see) const {
    see.reads("parameters", parameters);
    see.writes("parameters", parameters);
    see.reads("m", m);
    see.writes("m", m);
    see.reads("v", v);
    see.writes("v", v);
    see.reads("gradients", gradients);
    see.reads("step", step);
    see.writes("step", step);
    see.value("weight_decay", weight_decay);
    see.value("learning_rate", learning_rate);
    see.value("beta1", beta1);
    see.value("beta2", beta2);
    see.value("epsilon", epsilon);
    see.value("gradient_factor", gradient_factor);
  }
  [[nodiscard]] std::vector<const std::vector<Id>*> states() const { return {&m, &v}; }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

// ---- The sum of gradients over the ranks that share a batch.

/// Each of the tensors, all f32, becomes its sum over all ranks (MPI 4.0, 6.9.6 MPI_Allreduce).
/// What a rank adds is weighted already: the `scale` of its loss is that of its rows in the whole
/// batch.
struct AllReduce {
  std::vector<Id> tensors;
  std::int64_t ranks = 1;

  static constexpr const char* name = "AllReduce";
  static constexpr OpCategory category = OpCategory::communication;
  template <class See>
  void describe(See& see) const {
    see.reads("tensors", tensors);
    see.writes("tensors", tensors);
    see.value("ranks", ranks);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

}  // namespace crossover
