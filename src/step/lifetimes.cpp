// SPDX-License-Identifier: Apache-2.0
#include "lifetimes.h"

#include <algorithm>
#include <map>

namespace crossover {

Lifetimes::Lifetimes(const Workload& workload, bool kept) : spans_(workload.tensors.size()) {
  for (std::size_t step = 0; step < workload.steps.size(); ++step) {
    add_step(workload, static_cast<int>(step), kept);
  }
  for (std::size_t i = 0; i < spans_.size(); ++i) {
    if (!spans_[i].empty()) {
      activations_.push_back(static_cast<Id>(i));
    }
  }
}

void Lifetimes::add_step(const Workload& workload, int step, bool kept) {
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

bool Lifetimes::overlap(Id a, Id b) const {
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

}  // namespace crossover
