// SPDX-License-Identifier: Apache-2.0
// Linked where CUDA is missing, in place of the CUDA backend.
#include "crossover/backend.h"

namespace crossover {

CudaBackend make_cuda_backend() { return {.reason = "none (built without CUDA)"}; }
CudaBackend make_cuda_backend(Ranks& /*ranks*/) { return make_cuda_backend(); }

}  // namespace crossover
