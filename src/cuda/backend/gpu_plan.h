// SPDX-License-Identifier: Apache-2.0
// A Workload planned for a GPU: a LaunchPlan, and the choice between the forms its graphs may have.
#pragma once

#include <memory>

#include "../libraries/library.h"
#include "crossover/backend.h"
#include "runtime.h"

namespace crossover::cuda {

/// Throws as make_plan() does. The thread must use the device.
std::unique_ptr<Plan> make_gpu_plan(const Workload& workload, const CompileOptions& options,
                                    const Device& device, std::unique_ptr<ProductLibrary> products,
                                    std::unique_ptr<ConvolutionLibrary> convolutions);

}  // namespace crossover::cuda
