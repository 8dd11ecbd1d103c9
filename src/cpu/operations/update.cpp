// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <variant>
#include <vector>

#include "../base/threads.h"
#include "crossover/backend.h"
#include "crossover/memory.h"
#include "crossover/ranks.h"
#include "operations.h"

namespace crossover::cpu {

// ---- Update spans

namespace {

/// Whether plan_memory() lays b right after a, but for padding: tensors of one role in the order of
/// their numbers.
bool are_neighbours(const Workload& workload, Id a, Id b) {
  const Role role = workload[a].role;
  const bool in_order = role == Role::parameter || role == Role::gradient || role == Role::state;
  if (!in_order || workload[b].role != role || b <= a) {
    return false;
  }
  return std::none_of(workload.tensors.begin() + a + 1, workload.tensors.begin() + b,
                      [role](const Tensor& between) { return between.role == role; });
}

std::int64_t floats_to_next(std::int64_t floats) {
  constexpr std::int64_t line = MemoryPlan::alignment / static_cast<std::int64_t>(sizeof(float));
  return (floats + line - 1) / line * line;
}

}  // namespace

std::vector<UpdateSpan> update_spans(Lowering& to,
                                     const std::vector<const std::vector<Id>*>& arrays,
                                     const std::vector<double>& weight_decay) {
  std::vector<UpdateSpan> spans;
  std::vector<Id> last;  // the tensors at the end of the last span; empty where nothing may follow
  for (std::size_t p = 0; p < arrays[0]->size(); ++p) {
    std::vector<Id> ids;
    ids.reserve(arrays.size());
    for (const std::vector<Id>* array : arrays) {
      ids.push_back((*array)[p]);
      if (to[ids.back()].type != Type::f32) {
        throw Unsupported("the CPU backend's optimizers read f32, not '" + to[ids.back()].name +
                          "' in " + to_string(to[ids.back()].type));
      }
    }
    const Layout layout = to.settle(ids[0], {});
    const double decay = weight_decay.empty() ? 0 : weight_decay[p];
    const std::int64_t floats = layout.bytes(to[ids[0]]) / static_cast<std::int64_t>(sizeof(float));
    const bool lie_alike =
        std::all_of(ids.begin(), ids.end(), [&](Id id) { return to.settle(id, layout) == layout; });
    const bool follows = lie_alike && !last.empty() && spans.back().weight_decay == decay &&
                         std::equal(last.begin(), last.end(), ids.begin(), [&](Id a, Id b) {
                           return are_neighbours(to.workload(), a, b);
                         });
    if (follows) {
      spans.back().floats = floats_to_next(spans.back().floats) + floats;
    } else {
      spans.push_back({.first = ids, .layout = layout, .floats = floats, .weight_decay = decay});
    }
    last = lie_alike ? ids : std::vector<Id>{};
  }
  return spans;
}

// ---- Update: its step first, then a pass over the parameters of each weight decay.

namespace {

/// m and v: as many as there are states.
template <std::size_t states, class Factors>
void update(int threads, const Factors& factors, std::int64_t count, float* w, const float* g,
            float* m, float* v) {
  split(threads, count, [=](std::int64_t begin, std::int64_t end) {
    const Factors by = factors;
    for (std::int64_t i = begin; i < end; ++i) {
      float none = 0;
      by.update(w[i], g[i], states > 0 ? m[i] : none, states > 1 ? v[i] : none);
    }
  });
}

}  // namespace

void lower(const Update& op, Lowering& to) {
  if (op.step != none) {
    to.add(OpCategory::update, 1, {updates(op.step)},
           [](const Invocation& call) { ++*call.operand<std::int32_t>(0); });
  }
  std::vector<const std::vector<Id>*> arrays{&op.parameters, &op.gradients};
  for (const std::vector<Id>& states : op.states) {
    arrays.push_back(&states);
  }
  for (const UpdateSpan& span : update_spans(to, arrays, op.weight_decay)) {
    std::vector<Argument> arguments;
    for (const Id first : span.first) {
      arguments.push_back(updates(first, span.layout));
    }
    arguments[1].written = false;  // the gradients
    if (op.step != none) {
      arguments.push_back(reads(op.step));
    }
    const auto add = [&](const auto& rule) {
      using Rule = std::remove_cvref_t<decltype(rule)>;
      constexpr std::size_t states = Rule::states.size();
      to.add(OpCategory::update, span.threads(to), arguments,
             [rule, n = span.floats,
              terms = UpdateTerms{.gradient_factor = op.gradient_factor,
                                  .weight_decay = span.weight_decay}](const Invocation& call) {
               UpdateTerms now = terms;
               if constexpr (Rule::counts_steps) {
                 now.step = *call.operand<const std::int32_t>(2 + states);
               }
               update<states>(call.threads, rule.template factors<float>(now), n,
                              call.operand<float>(0), call.operand<const float>(1),
                              states > 0 ? call.operand<float>(2) : nullptr,
                              states > 1 ? call.operand<float>(3) : nullptr);
             });
    };
    std::visit(add, op.rule);
  }
}

// ---- All reduce

/// One call for all tensors that lie one after another: a call costs more than a few numbers do.
void lower(const AllReduce& op, Lowering& to) {
  for (const UpdateSpan& span : update_spans(to, {&op.tensors}, {})) {
    to.add(OpCategory::communication, 1, {updates(span.first[0], span.layout)},
           [ranks = to.ranks(), overlaps = to.overlaps_sums(),
            n = static_cast<std::size_t>(span.floats)](const Invocation& call) {
             const std::span<float> values(call.operand<float>(0), n);
             if (overlaps) {
               ranks->start_sum(values);
             } else {
               ranks->sum(values);
             }
           });
  }
}

}  // namespace crossover::cpu
