// SPDX-License-Identifier: Apache-2.0
// The CUDA backend on any library of matrix products.
#pragma once

#include <memory>

#include "crossover/backend.h"
#include "product_library.h"
#include "runtime.h"

namespace crossover::cuda {

std::unique_ptr<Backend> make_backend(const Device& device, MakeProductLibrary make_library);

}  // namespace crossover::cuda
