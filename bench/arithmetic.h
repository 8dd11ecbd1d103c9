// SPDX-License-Identifier: Apache-2.0
// What a row's verification says of the arithmetic that it took into account.
#pragma once

#include <nlohmann/json.hpp>

#include "crossover/backend.h"

namespace crossover::bench {

/// Adds "tf32_factors" where the precision is tf32, and "relu_passes_zero" where it is so.
void tell_arithmetic(const Arithmetic& arithmetic, Precision precision,
                     nlohmann::ordered_json& verification);

}  // namespace crossover::bench
