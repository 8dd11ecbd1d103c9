// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
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

/// Fills the block from `plan.bytes` on; what has a place already keeps it.
void place_rest(const Workload& workload, const std::vector<Role>& roles, MemoryPlan& plan,
                std::span<const std::int64_t> physical_bytes = {}) {
  const auto size = [&](Id id) {
    return aligned(physical_bytes.empty() ? bytes(workload[id])
                                          : physical_bytes[static_cast<std::size_t>(id)]);
  };
  const auto place = [&](Id id, std::int64_t& end) {
    plan.offset[static_cast<std::size_t>(id)] = end;
    end = add(end, size(id));
  };

  for (const Role role : roles) {
    for (std::size_t i = 0; i < workload.tensors.size(); ++i) {
      if (workload.tensors[i].role == role) {
        place(static_cast<Id>(i), plan.bytes);
      }
    }
  }

  const std::int64_t start = plan.bytes;
  for (const Step& step : workload.steps) {
    std::vector<Id> used;
    for (const Op& op : step.ops) {
      const Operands ids = operands(op);
      for (const auto* list : {&ids.reads, &ids.writes}) {
        std::copy_if(list->begin(), list->end(), std::back_inserter(used),
                     [&](Id id) { return workload[id].role == Role::activation; });
      }
    }
    // Two steps may share a tensor (they differ in accumulation only): what is placed stays, and
    // what this step adds goes behind all of it.
    std::int64_t end = start;
    for (const Id id : used) {
      const std::int64_t at = plan.offset[static_cast<std::size_t>(id)];
      if (at >= 0) {
        end = std::max(end, add(at, size(id)));
      }
    }
    for (const Id id : used) {
      if (plan.offset[static_cast<std::size_t>(id)] < 0) {
        place(id, end);
      }
    }
    plan.bytes = std::max(plan.bytes, end);
  }
}

MemoryPlan nothing_placed(const Workload& workload) {
  return {.offset = std::vector<std::int64_t>(workload.tensors.size(), -1)};
}

}  // namespace

MemoryPlan plan_memory(const Workload& workload, std::span<const std::int64_t> physical_bytes) {
  MemoryPlan plan = nothing_placed(workload);
  place_rest(workload, {Role::data, Role::parameter, Role::gradient, Role::state, Role::loss}, plan,
             physical_bytes);
  return plan;
}

StreamedMemoryPlan plan_streamed_memory(const Workload& workload, int buffers) {
  StreamedMemoryPlan streamed{.plan = nothing_placed(workload)};
  for (std::size_t i = 0; i < workload.tensors.size(); ++i) {
    if (workload.tensors[i].role == Role::input) {
      streamed.plan.offset[i] = streamed.input_bytes;
      streamed.input_bytes = add(streamed.input_bytes, aligned(bytes(workload.tensors[i])));
    }
  }
  for (int buffer = 0; buffer < buffers; ++buffer) {
    streamed.plan.bytes = add(streamed.plan.bytes, streamed.input_bytes);
  }
  place_rest(workload, {Role::parameter, Role::gradient, Role::state, Role::loss}, streamed.plan);
  return streamed;
}

}  // namespace crossover
