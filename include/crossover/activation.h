// SPDX-License-Identifier: Apache-2.0
// Activation functions between the layers of a network; elementwise.h computes them.
#pragma once

namespace crossover {

enum class Activation { identity, relu, sigmoid };

}  // namespace crossover
