// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <stdexcept>

#include "crossover/memory.h"

namespace crossover {
namespace {

std::int64_t add(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) {
    throw std::overflow_error("a workload of more than 2^63 bytes; ask for smaller sizes");
  }
  return sum;
}

std::int64_t aligned(std::int64_t size) {
  return add(size, MemoryPlan::alignment - 1) / MemoryPlan::alignment * MemoryPlan::alignment;
}

}  // namespace

MemoryPlan plan_memory(const Workload& workload) {
  MemoryPlan plan{.offset = std::vector<std::int64_t>(workload.tensors.size(), -1)};
  const auto place = [&](Id id, std::int64_t& end) {
    plan.offset[static_cast<std::size_t>(id)] = end;
    end = add(end, aligned(bytes(workload[id])));
  };

  for (const Role role : {Role::data, Role::parameter, Role::gradient, Role::state, Role::loss}) {
    for (std::size_t i = 0; i < workload.tensors.size(); ++i) {
      if (workload.tensors[i].role == role) {
        place(static_cast<Id>(i), plan.bytes);
      }
    }
  }

  const std::int64_t start = plan.bytes;
  for (const Step& step : workload.steps) {
    std::int64_t end = start;
    // Two steps may share a tensor (they differ in accumulation only): what is placed stays, and
    // what this step adds goes behind all of it.
    for (const Op& op : step.ops) {
      const Operands used = operands(op);
      for (const auto* ids : {&used.reads, &used.writes}) {
        for (const Id id : *ids) {
          const std::int64_t at = plan.offset[static_cast<std::size_t>(id)];
          if (workload[id].role == Role::activation && at >= 0) {
            end = std::max(end, add(at, aligned(bytes(workload[id]))));
          }
        }
      }
    }
    for (const Op& op : step.ops) {
      const Operands used = operands(op);
      for (const auto* ids : {&used.reads, &used.writes}) {
        for (const Id id : *ids) {
          if (workload[id].role == Role::activation &&
              plan.offset[static_cast<std::size_t>(id)] < 0) {
            place(id, end);
          }
        }
      }
    }
    plan.bytes = std::max(plan.bytes, end);
  }
  return plan;
}

}  // namespace crossover
