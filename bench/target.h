// SPDX-License-Identifier: Apache-2.0
// One target of a comparison: a device and a way to use it.
#pragma once

#include <string>
#include <vector>

#include "crossover/backend.h"
#include "device.h"
#include "row.h"

namespace crossover::bench {

struct Target {
  Device* device = nullptr;
  CompileOptions options;
  Configuration configuration;  ///< the device part of the name
  std::vector<std::string> quality;
};

Target cpu_target(Devices& devices, int threads, Precision precision);

/// A target for each of --products, named where it is not the default, or none where there is no
/// GPU. `mode` is what the names say behind the device.
std::vector<Target> gpu_targets(const Arguments& arguments, Devices& devices,
                                const CompileOptions& options, const Configuration& mode);

}  // namespace crossover::bench
