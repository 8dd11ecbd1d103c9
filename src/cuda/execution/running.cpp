// SPDX-License-Identifier: Apache-2.0
#include "running.h"

#include "../kernels/loss.h"

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
  cuda::set_run(index, binding.site());
  next_run = index;
}

void Running::start_at(std::int64_t index) const {
  if (next_run != index) {
    set_run(index);
  }
}

void Running::upload_order() const {
  std::vector<OrderedRun> order;
  order.reserve(workload.order.size());
  for (const Run& run : workload.order) {
    order.push_back({.first_row = run.first_row, .step = run.step});
  }
  CROSSOVER_CUDA_CHECK(cudaMemcpyAsync(binding.address(plan.order), order.data(),
                                       order.size() * sizeof(OrderedRun), cudaMemcpyHostToDevice,
                                       stream()));
  wait();  // `order` ends here
}

void Running::issue(int step, const Position& position) const {
  const BoundStep& launches = steps[static_cast<std::size_t>(step)];
  const auto call = [&](std::size_t first, std::size_t end, Call BoundLaunch::*where) {
    for (std::size_t i = first; i < end; ++i) {
      (launches[i].*where)(position);
    }
  };
  std::size_t at = 0;
  for (const SideBySide& parts : step_plan(step).side_by_side) {
    call(at, parts.first, &BoundLaunch::call);
    second.fork_from(stream());
    call(parts.first, parts.second, &BoundLaunch::call);
    call(parts.second, parts.end, &BoundLaunch::in_second_stream);
    second.join(stream());
    at = parts.end;
  }
  call(at, launches.size(), &BoundLaunch::call);
}

void Running::issue_alone(int step, const Position& position) const {
  for (const BoundLaunch& launch : steps[static_cast<std::size_t>(step)]) {
    if (launch.category != OpCategory::communication) {
      launch.call(position);
    }
  }
}

}  // namespace crossover::cuda
