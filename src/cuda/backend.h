// SPDX-License-Identifier: Apache-2.0
// The CUDA backend on any library of matrix products.
#pragma once

#include <cuda_runtime.h>

#include <memory>

#include "crossover/backend.h"
#include "product_library.h"

namespace crossover::cuda {

std::unique_ptr<Backend> make_backend(const cudaDeviceProp& device,
                                      MakeProductLibrary make_library);

}  // namespace crossover::cuda
