// SPDX-License-Identifier: Apache-2.0
#include "crossover/cost.h"

#include <set>
#include <variant>

namespace crossover {

Cost& Cost::operator+=(const Cost& other) {
  flops += other.flops;
  avoidable_flops += other.avoidable_flops;
  bytes += other.bytes;
  launches += other.launches;
  return *this;
}

Cost cost(const Workload& workload, const Op& op) {
  Cost cost = std::visit([&](const auto& operation) { return operation.cost(workload); }, op);
  const Operands used = operands(op);
  for (const auto* ids : {&used.reads, &used.writes}) {
    for (const Id id : *ids) {
      // Of the losses, an operation touches its run's one element.
      const Tensor& tensor = workload[id];
      const std::int64_t touched = tensor.role == Role::loss ? 1 : elements(tensor.shape);
      cost.bytes += static_cast<double>(touched) * static_cast<double>(bytes(tensor.type));
    }
  }
  return cost;
}

Cost cost(const Workload& workload, const Step& step) {
  Cost sum;
  for (const Op& op : step.ops) {
    sum += cost(workload, op);
  }
  return sum;
}

Cost cost(const Workload& workload) {
  std::vector<Cost> of_step;
  of_step.reserve(workload.steps.size());
  for (const Step& step : workload.steps) {
    of_step.push_back(cost(workload, step));
  }
  Cost sum;
  for (const Run& run : workload.order) {
    sum += of_step[static_cast<std::size_t>(run.step)];
  }
  return sum;
}

std::int64_t footprint_bytes(const Workload& workload, const Step& step) {
  std::set<Id> touched;
  for (const Op& op : step.ops) {
    const Operands used = operands(op);
    touched.insert(used.reads.begin(), used.reads.end());
    touched.insert(used.writes.begin(), used.writes.end());
  }
  std::int64_t sum = 0;
  for (const Id id : touched) {
    sum += bytes(workload[id]);
  }
  return sum;
}

}  // namespace crossover
