// SPDX-License-Identifier: Apache-2.0
// The CUDA backend on any libraries of matrix products and convolutions.
#pragma once

#include <memory>

#include "../libraries/cudnn_library.h"
#include "../libraries/library.h"
#include "crossover/backend.h"
#include "runtime.h"

namespace crossover::cuda {

std::unique_ptr<Backend> make_backend(
    const Device& device, MakeProductLibrary make_products,
    MakeConvolutionLibrary make_convolutions = make_cudnn_library);

}  // namespace crossover::cuda
