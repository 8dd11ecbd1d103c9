// SPDX-License-Identifier: Apache-2.0
#include "crossover/memory.h"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <vector>

#include "crossover/step.h"

namespace crossover {

namespace {

/// When the activations of a Workload hold something that is still needed: those that never do at
/// the same time can share memory.
class Lifetimes {
 public:
  /// `kept`: what a step writes lives to its end, read or not.
  Lifetimes(const Workload& workload, bool kept) : spans_(workload.tensors.size()) {
    for (std::size_t step = 0; step < workload.steps.size(); ++step) {
      add_step(workload, static_cast<int>(step), kept);
    }
    for (std::size_t i = 0; i < spans_.size(); ++i) {
      if (!spans_[i].empty()) {
        activations_.push_back(static_cast<Id>(i));
      }
    }
  }

  /// The activations that any step uses, in the order of their numbers.
  [[nodiscard]] const std::vector<Id>& activations() const { return activations_; }

  /// Whether some step needs both at once.
  [[nodiscard]] bool overlap(Id a, Id b) const {
    const std::vector<Span>& of_b = spans_[static_cast<std::size_t>(b)];
    auto other = of_b.begin();
    return std::any_of(spans_[static_cast<std::size_t>(a)].begin(),
                       spans_[static_cast<std::size_t>(a)].end(), [&](const Span& span) {
                         other = std::find_if(other, of_b.end(), [&](const Span& candidate) {
                           return candidate.step >= span.step;
                         });
                         return other != of_b.end() && other->step == span.step &&
                                span.first <= other->last && other->first <= span.last;
                       });
  }

 private:
  /// Positions of operations in one step, both inclusive. What a step reads before it writes it was
  /// put there from outside, and stays for the next run: it lives all the time. What nothing reads
  /// after it was written is a result, and lives to the end.
  struct Span {
    int step = 0;
    std::size_t first = 0, last = 0;
  };

  void add_step(const Workload& workload, int step, bool kept) {
    struct Use {
      std::size_t first = 0, last = 0;
      bool from_outside = false;  ///< read before it was written
      bool is_result = false;     ///< written last
    };
    std::map<Id, Use> uses;
    const std::vector<Op>& ops = workload.steps[static_cast<std::size_t>(step)].ops;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const Operands used = operands(ops[i]);
      for (const Id id : used.reads) {
        const auto [at, is_new] = uses.try_emplace(id, Use{.first = i, .from_outside = true});
        at->second.last = i;
        at->second.is_result = false;
      }
      for (const Id id : used.writes) {
        Use& use = uses.try_emplace(id, Use{.first = i}).first->second;
        use.last = i;
        use.is_result = true;
      }
    }
    const std::size_t end = ops.size();
    for (const auto& [id, use] : uses) {
      if (workload[id].role == Role::activation) {
        spans_[static_cast<std::size_t>(id)].push_back(
            {.step = step,
             .first = kept || use.from_outside ? 0 : use.first,
             .last = kept || use.from_outside || use.is_result ? end : use.last});
      }
    }
  }

  std::vector<Id> activations_;
  std::vector<std::vector<Span>> spans_;  ///< by tensor, in the order of the steps
};

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
  const auto place = [&](Id id) { return plan.offset[static_cast<std::size_t>(id)]; };
  std::vector<Id> placed;  // from the lowest place up
  for (const Id id : by_size) {
    std::int64_t at = start;
    for (const Id other : placed) {
      if (at >= place(other) + size(other) || !lifetimes.overlap(id, other)) {
        continue;
      }
      if (add(at, size(id)) <= place(other)) {
        break;
      }
      at = place(other) + size(other);
    }
    plan.offset[static_cast<std::size_t>(id)] = at;
    plan.bytes = std::max(plan.bytes, add(at, size(id)));
    const auto behind = std::upper_bound(placed.begin(), placed.end(), at,
                                         [&](std::int64_t a, Id b) { return a < place(b); });
    placed.insert(behind, id);
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
