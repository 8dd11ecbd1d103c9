// SPDX-License-Identifier: Apache-2.0
// Layers one behind the other.
#pragma once

#include "crossover/model.h"

namespace crossover {

class Chain {
 public:
  explicit Chain(Model& model, Value start = 0) : model_(model), value_(start) {}

  /// A layer that reads what the last one gives.
  Chain& add(LayerKind kind) {
    value_ = model_.add(kind, {value_});
    return *this;
  }

  Chain& relu() { return add(ActivationLayer{Activation::relu}); }

  /// What the last layer gives.
  [[nodiscard]] Value value() const { return value_; }

 private:
  Model& model_;
  Value value_;
};

}  // namespace crossover
