// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <stdexcept>

#include "crossover/memory.h"
#include "lifetimes.h"

namespace crossover {
namespace {

std::int64_t add(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) {
    throw std::overflow_error("a workload of more than 2^63 bytes; ask for smaller sizes");
  }
  return sum;
}

std::int64_t checked_aligned(std::int64_t size) {
  static_cast<void>(add(size, MemoryPlan::alignment - 1));  // throws
  return MemoryPlan::aligned(size);
}

/// Behind what is placed already. The largest first, each at the lowest place where it meets none
/// that it must be kept apart from: greedy by size, which comes within some percent of the best
/// (Pisarchyk & Lee 2020, Efficient Memory Management for Deep Neural Net Inference).
template <class Size>
void place_activations(const Lifetimes& lifetimes, const Size& size, MemoryPlan& plan) {
  const std::int64_t start = plan.bytes;
  std::vector<Id> by_size = lifetimes.activations();
  std::stable_sort(by_size.begin(), by_size.end(), [&](Id a, Id b) { return size(a) > size(b); });
  struct Piece {
    std::int64_t begin, end;
  };
  std::vector<Id> placed;
  for (const Id id : by_size) {
    std::vector<Piece> taken;
    for (const Id other : placed) {
      if (lifetimes.overlap(id, other)) {
        const std::int64_t at = plan.offset[static_cast<std::size_t>(other)];
        taken.push_back({at, at + size(other)});
      }
    }
    std::sort(taken.begin(), taken.end(),
              [](const Piece& a, const Piece& b) { return a.begin < b.begin; });
    std::int64_t at = start;
    for (const Piece& piece : taken) {
      if (add(at, size(id)) <= piece.begin) {
        break;
      }
      at = std::max(at, piece.end);
    }
    plan.offset[static_cast<std::size_t>(id)] = at;
    plan.bytes = std::max(plan.bytes, add(at, size(id)));
    placed.push_back(id);
  }
}

/// Fills the block from `plan.bytes` on; what has a place already keeps it.
void place_rest(const Workload& workload, const std::vector<Role>& roles, MemoryPlan& plan,
                Activations activations, std::span<const std::int64_t> physical_bytes = {}) {
  const auto size = [&](Id id) {
    return checked_aligned(physical_bytes.empty() ? bytes(workload[id])
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

  place_activations(Lifetimes(workload, activations == Activations::kept), size, plan);
}

MemoryPlan nothing_placed(const Workload& workload) {
  return {.offset = std::vector<std::int64_t>(workload.tensors.size(), -1)};
}

}  // namespace

MemoryPlan plan_memory(const Workload& workload, std::span<const std::int64_t> physical_bytes,
                       Activations activations) {
  MemoryPlan plan = nothing_placed(workload);
  place_rest(workload, {Role::data, Role::parameter, Role::gradient, Role::state, Role::loss}, plan,
             activations, physical_bytes);
  return plan;
}

StreamedMemoryPlan plan_streamed_memory(const Workload& workload, int buffers,
                                        Activations activations,
                                        std::span<const std::int64_t> physical_bytes) {
  StreamedMemoryPlan streamed{.plan = nothing_placed(workload)};
  for (std::size_t i = 0; i < workload.tensors.size(); ++i) {
    if (workload.tensors[i].role == Role::input) {
      streamed.plan.offset[i] = streamed.input_bytes;
      streamed.input_bytes = add(streamed.input_bytes, checked_aligned(bytes(workload.tensors[i])));
    }
  }
  for (int buffer = 0; buffer < buffers; ++buffer) {
    streamed.plan.bytes = add(streamed.plan.bytes, streamed.input_bytes);
  }
  place_rest(workload, {Role::parameter, Role::gradient, Role::state, Role::loss}, streamed.plan,
             activations, physical_bytes);
  return streamed;
}

}  // namespace crossover
