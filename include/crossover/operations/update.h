// SPDX-License-Identifier: Apache-2.0
// What becomes of gradients: their sum over ranks, and the update of parameters. The rules by which
// optimizers do that: what each is told and keeps, and its arithmetic, written once: for the CPU,
// for CUDA kernels, and in double for the reference. A new rule is a struct like these, with its
// factors, in Optimizer.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "crossover/operation.h"
#include "crossover/operations/update_factors.h"

namespace crossover {

/// A list of states: one of them for each parameter, of its shape. A rule has at most two, m and v.
struct StatesName {
  const char* list;    ///< as an Update calls it
  const char* of_one;  ///< as the tensor of one parameter is called
};

/// What the factors of an update are made of besides what the rule is told.
struct UpdateTerms {
  double gradient_factor = 1;
  double weight_decay = 0;
  int step = 1;  ///< counts from 1
};

// ---- Plain stochastic gradient descent.

/// w -= learning_rate * g.
struct SgdOptions {
  double learning_rate = 0.1;

  static constexpr const char* name = "Sgd";
  static constexpr std::array<StatesName, 0> states{};
  static constexpr bool counts_steps = false;
  static constexpr double flops = 2;  ///< of a parameter
  template <class See>
  void describe(See& see) const {
    see.value("learning_rate", learning_rate);
  }
  template <class T>
  [[nodiscard]] SgdFactors<T> factors(const UpdateTerms& of) const {
    return {.learning_rate = static_cast<T>(learning_rate * of.gradient_factor)};
  }
};

// ---- Stochastic gradient descent with momentum.

/// velocity = momentum * velocity + g; w -= learning_rate * velocity: PyTorch's SGD with momentum.
struct MomentumOptions {
  double learning_rate = 0.01;
  double momentum = 0.9;

  static constexpr const char* name = "Momentum";
  static constexpr std::array<StatesName, 1> states{{{"velocities", "velocity"}}};
  static constexpr bool counts_steps = false;
  static constexpr double flops = 4;
  template <class See>
  void describe(See& see) const {
    see.value("learning_rate", learning_rate);
    see.value("momentum", momentum);
  }
  template <class T>
  [[nodiscard]] MomentumFactors<T> factors(const UpdateTerms& of) const {
    return {.learning_rate = static_cast<T>(learning_rate),
            .momentum = static_cast<T>(momentum),
            .gradient_factor = static_cast<T>(of.gradient_factor)};
  }
};

// ---- Adam with decoupled weight decay.

/// Adam (Kingma & Ba 2015) where nothing decays; else AdamW (Loshchilov & Hutter 2019) as PyTorch
/// computes it, decay decoupled: w *= 1 - lr * decay; m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g
/// g; w -= lr / (1 - b1^t) * m / (sqrt(v) / sqrt(1 - b2^t) + epsilon).
struct AdamWOptions {
  double learning_rate = 1e-3;
  double weight_decay = 1e-4;  ///< of parameters of two or more dimensions; others do not decay
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;

  static constexpr const char* name = "AdamW";
  static constexpr std::array<StatesName, 2> states{{{"m", "m"}, {"v", "v"}}};
  static constexpr bool counts_steps = true;
  static constexpr double flops = 14;
  template <class See>
  void describe(See& see) const {
    see.value("learning_rate", learning_rate);
    see.value("beta1", beta1);
    see.value("beta2", beta2);
    see.value("epsilon", epsilon);
  }
  /// Computed in double, since 1 - beta loses digits in float.
  template <class T>
  [[nodiscard]] AdamWFactors<T> factors(const UpdateTerms& of) const {
    const double correction1 = 1 - std::pow(beta1, static_cast<double>(of.step));
    const double correction2 = 1 - std::pow(beta2, static_cast<double>(of.step));
    return {.beta1 = static_cast<T>(beta1),
            .one_minus_beta1 = static_cast<T>(1 - beta1),
            .beta2 = static_cast<T>(beta2),
            .one_minus_beta2 = static_cast<T>(1 - beta2),
            .epsilon = static_cast<T>(epsilon),
            .step_size = static_cast<T>(learning_rate / correction1),
            .inverse_root_correction = static_cast<T>(1 / std::sqrt(correction2)),
            .keep = static_cast<T>(1 - learning_rate * of.weight_decay),
            .gradient_factor = static_cast<T>(of.gradient_factor)};
  }
  [[nodiscard]] AdamWClock<float> clock() const {
    return {.learning_rate = static_cast<float>(learning_rate),
            .log_beta1 = static_cast<float>(std::log(beta1)),
            .log_beta2 = static_cast<float>(std::log(beta2))};
  }
};

using Optimizer = std::variant<SgdOptions, MomentumOptions, AdamWOptions>;

// ---- The operations

/// What `rule` makes of each parameter and its gradient g, which stands for gradient_factor *
/// gradient. All are f32; gradients may be of 16 bits. A gradient that is not finite makes its
/// parameter not finite.
struct Update {
  Optimizer rule;
  std::vector<Id> parameters, gradients;
  std::vector<std::vector<Id>> states;  ///< the rule's lists, each with one for each parameter
  std::vector<double> weight_decay;     ///< AdamW's: one for each parameter; or empty, and 0
  /// Of a rule that counts them: one i32 that the operation increments before use.
  Id step = none;
  double gradient_factor = 1;  ///< undoes the loss's `scale` in the gradients

  [[nodiscard]] const char* name() const {
    return std::visit([](const auto& by) { return by.name; }, rule);
  }
  /// Of the parameter at that place in the list.
  [[nodiscard]] double decay_of(std::size_t parameter) const {
    return weight_decay.empty() ? 0 : weight_decay[parameter];
  }
  static constexpr OpCategory category = OpCategory::update;
  template <class See>
  void describe(See& see) const {
    see.reads("parameters", parameters);
    see.writes("parameters", parameters);
    std::visit(
        [&](const auto& by) {
          for (std::size_t i = 0; i < std::min(by.states.size(), states.size()); ++i) {
            see.reads(by.states[i].list, states[i]);
            see.writes(by.states[i].list, states[i]);
          }
          see.reads("gradients", gradients);
          see.newer_reads("step", step);
          if (step != none) {
            see.writes("step", step);
          }
          see.newer_value("weight_decay", weight_decay, {});
          by.describe(see);
        },
        rule);
    see.value("gradient_factor", gradient_factor);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

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
