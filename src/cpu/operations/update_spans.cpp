// SPDX-License-Identifier: Apache-2.0
#include "update_spans.h"

#include <algorithm>

#include "crossover/backend.h"
#include "crossover/memory.h"

namespace crossover::cpu {
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

}  // namespace crossover::cpu
