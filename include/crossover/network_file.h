// SPDX-License-Identifier: Apache-2.0
// Networks as data outside the program: docs/networks.md has the form.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <utility>
#include <vector>

#include "crossover/catalogue.h"
#include "crossover/model.h"

namespace crossover {

// ---- A network in JSON, out and in.

/// Layers that have no name are called as in messages: "layer 0".
nlohmann::ordered_json describe(const Model& model);

/// The network that describe() writes. Whether its layers fit together training_epoch() finds out.
/// Throws std::invalid_argument, in a sentence that names the layer, where the form is another.
Model model_from(const nlohmann::ordered_json& json);

// ---- Networks in files: a network in JSON with how it is trained unless flags say otherwise.

/// What a network of a file has at most: planning its memory takes time by the square of its
/// layers. No layer reads more values than there may be layers.
inline constexpr std::size_t most_layers_of_a_file = 10'000;
inline constexpr std::size_t most_dimensions_of_a_file = 8;
inline constexpr std::int64_t most_parameters_of_a_file = 1'000'000'000;
inline constexpr std::int64_t most_bytes_of_a_file = 16 << 20;

/// "sgd", "momentum", "adam" or "adamw".
std::string name_of(const Optimizer& optimizer);

/// One of each name, with its usual rates.
std::vector<std::pair<std::string, Optimizer>> named_optimizers();

/// describe(Model), and "training": rows, batch, optimizer and its rates.
nlohmann::ordered_json describe(const Task& task);

/// The Task that describe() writes, on generated rows. What "training" leaves out: batches of 100
/// rows, or 32 of images and sequences; ten batches; SGD with a learning rate of 0.01. Its layers
/// fit together. Throws std::invalid_argument, in a sentence that names the network and the layer,
/// where they do not, or the form is another.
Task task_from(const nlohmann::ordered_json& json);

/// Of the form that task_from() reads, as a JSON Schema (draft 7). That layers fit together, no
/// schema says.
nlohmann::ordered_json network_schema();

/// The network of a file, with its layers' inner widths times `factor`, rounded: features, channels
/// and hidden sizes of all layers but those that nothing but layers without a width separates from
/// the output. Another factor than 1 is appended to its name: "mynetx0.5". Throws
/// std::invalid_argument, which names the file, where it can't be read or is no such network.
Task read_network(const std::string& path, double factor = 1);

}  // namespace crossover
