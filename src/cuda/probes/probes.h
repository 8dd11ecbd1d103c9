// SPDX-License-Identifier: Apache-2.0
// What a GPU has of the probes.
#pragma once

#include <cuda_runtime.h>

#include <memory>

#include "crossover/probe.h"

namespace crossover::cuda {

/// See Backend::make_probe().
std::unique_ptr<Probe> make_probe(const ProbeSpec& spec, const cudaDeviceProp& device);

}  // namespace crossover::cuda
