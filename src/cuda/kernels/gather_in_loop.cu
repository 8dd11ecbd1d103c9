// SPDX-License-Identifier: Apache-2.0
// By itself: a driver without loops in graphs may not load code that sets their condition.
#include "gather_rows.cuh"

#if CUDART_VERSION >= 12040  // else nothing makes loops

namespace crossover::cuda {
namespace {

__global__ void gather_in_loop_kernel(GatherArguments of, LoopCondition condition) {
  const std::int64_t run = run_of_network(of);
  if (thread_index() == 0 && blockIdx.y == 0) {  // which are all in the same run
    // It counts when the loop's body has ended.
    cudaGraphSetConditional(condition.handle, run + condition.cycle < condition.end ? 1 : 0);
  }
  gather_rows(of, run);
}

}  // namespace

void gather_in_loop(cudaStream_t stream, const GatherArguments& arguments,
                    const LoopCondition& condition) {
  launch(gather_in_loop_kernel, grid_for_gathering(arguments), stream, arguments, condition);
}

void prepare_gather_in_loop() { CROSSOVER_CUDA_CHECK(find_code(gather_in_loop_kernel)); }

}  // namespace crossover::cuda

#endif
