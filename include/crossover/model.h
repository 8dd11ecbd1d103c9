// SPDX-License-Identifier: Apache-2.0
// A network as data: layers and what they read. training.h lowers it to a Workload.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "crossover/step.h"

namespace crossover {

/// [..., in] -> [..., out_features], with bias.
struct LinearLayer {
  std::int64_t out_features;
};

struct ActivationLayer {
  Activation activation;
};

/// The sum of two values of one shape.
struct AddLayer {};

/// A value of the network: 0 is the input, i + 1 the result of layer i.
using Value = int;

struct Layer {
  std::variant<LinearLayer, ActivationLayer, AddLayer> kind;
  std::vector<Value> inputs;
};

/// A classifier. The last layer's result [batch, classes] goes into softmax cross-entropy.
struct Model {
  std::string name;
  Shape sample;  ///< shape of one sample, without the batch
  std::int64_t classes = 0;
  std::vector<Layer> layers;

  /// Appends a layer and returns the value it produces.
  Value add(std::variant<LinearLayer, ActivationLayer, AddLayer> kind, std::vector<Value> inputs);
};

/// Fully connected layers of the given widths (input first, classes last), an activation between
/// them. Throws std::invalid_argument on fewer than two widths, a width < 1 or fewer than two
/// classes.
Model mlp(std::string name, const std::vector<std::int64_t>& widths, Activation activation);

}  // namespace crossover
