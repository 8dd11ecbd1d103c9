// SPDX-License-Identifier: Apache-2.0
// What training or using a network costs, as JSON: counted from its operations, not measured.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "command_line/arguments.h"

namespace crossover::bench {

/// The cost of the one network, batch size and precision that the command line names;
/// docs/method/epoch.md defines the fields. Throws UsageError where it names none or several, or
/// where the numbers are beyond counting.
nlohmann::ordered_json cost_json(const Arguments& arguments);

}  // namespace crossover::bench
