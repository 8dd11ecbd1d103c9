// SPDX-License-Identifier: Apache-2.0
// Linked where CUDA is missing, in place of the CUDA backend.
#include "crossover/backend.h"

namespace crossover {

FoundBackend make_cuda_backend(Ranks* /*ranks*/) { return {.reason = "none (built without CUDA)"}; }

}  // namespace crossover
