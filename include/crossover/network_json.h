// SPDX-License-Identifier: Apache-2.0
// A network in JSON, out and in: docs/networks.md has the form.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "crossover/model.h"

namespace crossover {

/// Layers that have no name are called as in messages: "layer 0".
nlohmann::ordered_json describe(const Model& model);

/// The network that describe() writes. Whether its layers fit together training_epoch() finds out.
/// Throws std::invalid_argument, in a sentence that names the layer, where the form is another.
Model model_from(const nlohmann::ordered_json& json);

}  // namespace crossover
