// SPDX-License-Identifier: Apache-2.0
#include "crossover/model.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "crossover/dataset.h"

namespace crossover {

Value Model::add(LayerKind kind, std::vector<Value> inputs) {
  layers.push_back({.kind = std::move(kind), .inputs = std::move(inputs)});
  return static_cast<Value>(layers.size());
}

bool Model::reads_plain_rows() const {
  return sample.size() == 1 && sample_type == Type::f32 && labels.empty() &&
         loss == LossFunction::cross_entropy;
}

bool Model::gives_tokens(Value value) const {
  while (value > 0) {
    const Layer& layer = layers[static_cast<std::size_t>(value) - 1];
    if (!std::holds_alternative<SliceLayer>(layer.kind)) {
      return false;
    }
    value = layer.inputs.front();
  }
  return sample_type == Type::i32;
}

std::vector<std::int64_t> vocabularies(const Model& model) {
  constexpr std::int64_t unread = 0;
  std::vector<std::int64_t> all(static_cast<std::size_t>(model.sample.front()), unread);
  struct Part {
    std::int64_t first, end;
  };
  std::vector<Part> values{{0, model.sample.front()}};  // of those that are tokens
  for (const Layer& layer : model.layers) {
    Part read = values[static_cast<std::size_t>(layer.inputs.front())];
    if (const auto* slice = std::get_if<SliceLayer>(&layer.kind)) {
      read = {read.first + slice->from, read.first + slice->to};
    } else if (const auto* embedding = std::get_if<EmbeddingLayer>(&layer.kind)) {
      for (std::int64_t place = read.first; place < read.end; ++place) {
        std::int64_t& rows = all.at(static_cast<std::size_t>(place));
        rows = rows == unread ? embedding->vocabulary : std::min(rows, embedding->vocabulary);
      }
    }
    values.push_back(read);
  }
  std::replace(all.begin(), all.end(), unread, model.classes);
  return all;
}

std::int64_t logits_of_a_sample(const Model& model) {
  return std::accumulate(model.labels.begin(), model.labels.end(), model.classes,
                         std::multiplies<>());
}

Model mlp(std::string name, const std::vector<std::int64_t>& widths, Activation activation,
          LossFunction loss) {
  if (widths.size() < 2) {
    throw std::invalid_argument("an MLP needs at least two widths, inputs and classes");
  }
  for (const std::int64_t width : widths) {
    if (width < 1) {
      throw std::invalid_argument("the width " + std::to_string(width) + " of an MLP is below one");
    }
  }
  if (widths.back() < 2 && loss == LossFunction::cross_entropy) {
    throw std::invalid_argument("the last width of an MLP is its number of classes, at least two");
  }
  if (widths.back() > most_classes) {
    throw std::invalid_argument("the last width of an MLP is its number of classes, at most " +
                                std::to_string(most_classes));
  }
  Model model{.name = std::move(name),
              .sample = {widths.front()},
              .classes = widths.back(),
              .layers = {},
              .loss = loss};
  Value value = 0;
  for (std::size_t i = 1; i < widths.size(); ++i) {
    value = model.add(LinearLayer{widths[i]}, {value});
    if (i + 1 < widths.size()) {
      value = model.add(ActivationLayer{activation}, {value});
    }
  }
  return model;
}

}  // namespace crossover
