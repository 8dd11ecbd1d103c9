// SPDX-License-Identifier: Apache-2.0
// One side of a comparison: a device and a way to use it.
#pragma once

#include <string>
#include <vector>

#include "crossover/backend.h"
#include "device.h"
#include "row.h"

namespace crossover::bench {

struct Side {
  Device* device = nullptr;
  CompileOptions options;
  Configuration configuration;  ///< the device part of the name
  std::vector<std::string> quality;
};

Side cpu_side(Devices& devices, int threads, Precision precision);

/// A side for each of --products, named where it is not the default, or none where there is no GPU.
/// `mode` is what the names say behind the device.
std::vector<Side> gpu_sides(const Arguments& arguments, Devices& devices,
                            const CompileOptions& options, const Configuration& mode);

}  // namespace crossover::bench
