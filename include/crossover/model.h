// SPDX-License-Identifier: Apache-2.0
// A network as data: layers and what they read. training.h lowers it to a Workload.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "crossover/functions.h"
#include "crossover/layers.h"

namespace crossover {

/// A value of the network: 0 is the input, i + 1 the result of layer i.
using Value = int;

struct Layer {
  LayerKind kind;
  std::vector<Value> inputs;
  std::string name = {};          ///< in messages; empty: "layer 2", by its place from 0
  LayerNumber shared = no_layer;  ///< one before it, of the same kind, whose parameters it has
  bool frozen = false;            ///< its own parameters stay as they start
};

/// The last layer's result goes into the loss: of a classifier [batch, classes], or, where it
/// labels each place of a sequence, [time, batch, classes]; with another loss [batch, outputs].
struct Model {
  std::string name;
  Shape sample;                  ///< shape of one sample, without the batch
  Type sample_type = Type::f32;  ///< i32 of tokens
  std::int64_t classes = 0;  ///< with another loss than cross-entropy: outputs, each with a target
  Shape labels = {};         ///< of one sample: {} where it has one, {time} of a sequence
  std::vector<Layer> layers;
  LossFunction loss = LossFunction::cross_entropy;

  /// Appends a layer and returns the value it produces.
  Value add(LayerKind kind, std::vector<Value> inputs);

  /// Whether the value consists of tokens: the input, or a part of it.
  [[nodiscard]] bool gives_tokens(Value value) const;

  /// Whether a sample is a row of numbers with a label, as a CSV file has them.
  [[nodiscard]] bool reads_plain_rows() const;
};

/// How many numbers the loss reads of a sample.
std::int64_t logits_of_a_sample(const Model& model);

/// Of each token of a sample, how many there are: the rows of the smallest embedding that reads it,
/// or as many as classes where none does.
std::vector<std::int64_t> vocabularies(const Model& model);

/// Fully connected layers of the given widths (input first, classes or outputs last), an activation
/// between them. Throws std::invalid_argument on fewer than two widths, a width < 1, fewer than two
/// classes or more than most_classes.
Model mlp(std::string name, const std::vector<std::int64_t>& widths, Activation activation,
          LossFunction loss = LossFunction::cross_entropy);

}  // namespace crossover
