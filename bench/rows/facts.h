// SPDX-License-Identifier: Apache-2.0
// What the making of a row found out, as the result file has it.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "rows/row.h"

namespace crossover::bench {

/// verification, label, workload, chosen, convolutions, minimum_work, and the counters that are
/// facts; all but the last are left out where there is nothing to tell.
nlohmann::ordered_json facts_json(const Result& result);

/// {"losses": [0.69, ...], "norms": [1.2, ...]}, and back.
nlohmann::ordered_json first_steps_json(const FirstSteps& steps);
FirstSteps first_steps_in(const nlohmann::ordered_json& json);

/// {"execution": "fused", "cpu_threads": "1"}, and back.
nlohmann::ordered_json configuration_json(const Configuration& configuration);
Configuration configuration_in(const nlohmann::ordered_json& json);

}  // namespace crossover::bench
