// SPDX-License-Identifier: Apache-2.0
// A network as data: layers and what they read. training.h lowers it to a Workload.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "crossover/layers.h"

namespace crossover {

/// A value of the network: 0 is the input, i + 1 the result of layer i.
using Value = int;

struct Layer {
  LayerKind kind;
  std::vector<Value> inputs;
};

/// A classifier. The last layer's result [batch, classes] goes into softmax cross-entropy.
struct Model {
  std::string name;
  Shape sample;  ///< shape of one sample, without the batch
  std::int64_t classes = 0;
  std::vector<Layer> layers;

  /// Appends a layer and returns the value it produces.
  Value add(LayerKind kind, std::vector<Value> inputs);
};

/// Fully connected layers of the given widths (input first, classes last), an activation between
/// them. Throws std::invalid_argument on fewer than two widths, a width < 1 or fewer than two
/// classes.
Model mlp(std::string name, const std::vector<std::int64_t>& widths, Activation activation);

}  // namespace crossover
