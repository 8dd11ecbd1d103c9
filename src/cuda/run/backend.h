// SPDX-License-Identifier: Apache-2.0
// The CUDA backend on any libraries of matrix products, convolutions, attention and sums over
// ranks.
#pragma once

#include <memory>

#include "../base/runtime.h"
#include "../libraries/algorithms.h"
#include "../libraries/library.h"
#include "crossover/backend.h"

namespace crossover::cuda {

std::unique_ptr<Backend> make_backend(const Device& device, MakeProductLibrary make_products,
                                      MakeConvolutionLibrary make_convolutions = make_cudnn_library,
                                      std::shared_ptr<Collectives> collectives = nullptr,
                                      MakeSdpaLibrary make_sdpas = make_sdpa_library);

/// A Workload planned for a GPU: a LaunchPlan, and the choice between the forms its graphs may
/// have. Throws as make_plan() does, and Unsupported where it sums over ranks without collectives.
/// The thread must use the device.
std::unique_ptr<Plan> make_gpu_plan(const Workload& workload, const CompileOptions& options,
                                    const Device& device, SharedAlgorithms algorithms,
                                    std::shared_ptr<Collectives> collectives = nullptr);

}  // namespace crossover::cuda
