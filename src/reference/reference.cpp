// SPDX-License-Identifier: Apache-2.0
#include "crossover/reference.h"

#include <utility>
#include <variant>

#include "run.h"

namespace crossover {
namespace {

bool has_values(const Workload& workload, std::size_t i) {
  return workload.tensors[i].role != Role::input;
}

}  // namespace

Reference::Reference(Workload workload) : workload_(std::move(workload)) {
  check(workload_);
  values_.resize(workload_.tensors.size());
  for (std::size_t i = 0; i < values_.size(); ++i) {
    if (has_values(workload_, i)) {
      values_[i].resize(static_cast<std::size_t>(elements(workload_.tensors[i].shape)));
    }
  }
}

std::span<double> Reference::operator[](Id id) { return values_.at(static_cast<std::size_t>(id)); }

void Reference::run(std::int64_t first, std::int64_t count) {
  for (std::int64_t position = first; position < first + count; ++position) {
    ReferenceRun run(workload_, values_, position);
    const int step = workload_.order[static_cast<std::size_t>(position)].step;
    for (const Op& op : workload_.steps[static_cast<std::size_t>(step)].ops) {
      std::visit([&](const auto& operation) { operation.execute(run); }, op);
      run.store(op);
    }
  }
}

std::int64_t reference_bytes(const Workload& workload) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < workload.tensors.size(); ++i) {
    if (has_values(workload, i)) {
      count += elements(workload.tensors[i].shape);
    }
  }
  return count * static_cast<std::int64_t>(sizeof(double));
}

}  // namespace crossover
