// SPDX-License-Identifier: Apache-2.0
// What networks are made with.
#pragma once

#include <utility>

#include "crossover/catalogue.h"
#include "crossover/model.h"

namespace crossover {

/// Layers one behind the other.
class Chain {
 public:
  explicit Chain(Model& model, Value start = 0) : model_(model), value_(start) {}

  /// A layer that reads what the last one gives.
  Chain& add(LayerKind kind) {
    value_ = model_.add(std::move(kind), {value_});
    return *this;
  }

  Chain& relu() { return add(ActivationLayer{Activation::relu}); }

  /// What the last layer gives.
  [[nodiscard]] Value value() const { return value_; }

 private:
  Model& model_;
  Value value_;
};

/// The training of a network on generated rows that it can read.
Task uniform_task(const Model& model, std::int64_t rows, std::int64_t batch,
                  const Optimizer& optimizer);

/// That of the networks of Shi et al. 2016. Trained by SGD on generated data: four batches of rows,
/// since their tables give seconds per mini-batch.
Task shi_task(const Model& model, std::int64_t batch, double learning_rate);

}  // namespace crossover
