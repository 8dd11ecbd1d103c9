// SPDX-License-Identifier: Apache-2.0
// The list of layers. To add one: docs/adding.md.
#pragma once

#include <variant>

#include "crossover/layer.h"
#include "crossover/layers/activation_layer.h"
#include "crossover/layers/add_layer.h"
#include "crossover/layers/linear_layer.h"

namespace crossover {

template <LayerKindType... Layers>
using OneOfLayers = std::variant<Layers...>;

using LayerKind = OneOfLayers<LinearLayer, ActivationLayer, AddLayer>;

}  // namespace crossover
