// SPDX-License-Identifier: Apache-2.0
// By itself, as gather_in_loop.cu is.
#include "gather.cuh"

#include "gather_rows.cuh"

namespace crossover::cuda {
namespace {

__global__ void gather_kernel(GatherArguments of) { gather_rows(of, run_of_network(of)); }

}  // namespace

void gather(cudaStream_t stream, const GatherArguments& arguments) {
  launch(gather_kernel, grid_for_gathering(arguments), stream, arguments);
}

}  // namespace crossover::cuda
