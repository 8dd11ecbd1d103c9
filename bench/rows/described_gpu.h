// SPDX-License-Identifier: Apache-2.0
// A GPU that this process plans for without touching it: a worker has it.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "rows/device.h"

namespace crossover::bench {

/// What a worker says of its devices: `gpu`, an object or null, and `gpu_reason`.
nlohmann::ordered_json description_json(const Devices& devices);

/// The CPU, and the GPU that a worker described.
Devices described_devices(const nlohmann::ordered_json& description);

}  // namespace crossover::bench
