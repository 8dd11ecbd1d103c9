// SPDX-License-Identifier: Apache-2.0
#include "running.h"

#include "../kernels/loss.cuh"

namespace crossover::cuda {

void LossReader::copy(const Binding& binding, std::int64_t run) const {
  const Id loss = binding.plan->loss;
  if (loss == none) {
    return;
  }
  const std::int64_t offset =
      (*binding.plan)[loss].offset + run * static_cast<std::int64_t>(sizeof(float));
  CROSSOVER_CUDA_CHECK(cudaMemcpyAsync(host_.get(), binding.address(offset), sizeof(float),
                                       cudaMemcpyDeviceToHost, binding.stream));
}

void Running::set_run(std::int64_t index) const {
  cuda::set_run(stream(), binding.run_counter(), index);
}

void Running::issue(int step, const Position& position) const {
  for (const BoundLaunch& launch : steps[static_cast<std::size_t>(step)]) {
    launch.call(position);
  }
}

}  // namespace crossover::cuda
