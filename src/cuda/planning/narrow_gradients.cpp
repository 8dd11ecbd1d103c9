// SPDX-License-Identifier: Apache-2.0
#include "narrow_gradients.h"

#include <algorithm>
#include <set>
#include <utility>
#include <variant>
#include <vector>

namespace crossover::cuda {
namespace {

bool is_optimizer(const Op& op) { return category(op) == OpCategory::update; }

/// Tensors that must stay f32: those that anything but an optimizer reads, or anything but a
/// gradient of a convolution writes.
std::set<Id> needed_in_f32(const Workload& workload) {
  std::set<Id> needed;
  for (const Step& step : workload.steps) {
    for (const Op& op : step.ops) {
      const Operands used = operands(op);
      if (!is_optimizer(op)) {
        needed.insert(used.reads.begin(), used.reads.end());
      }
      if (!std::holds_alternative<ConvolutionGrad>(op)) {
        needed.insert(used.writes.begin(), used.writes.end());
      }
    }
  }
  return needed;
}

}  // namespace

Workload narrow_gradients(Workload workload) {
  const std::set<Id> needed = needed_in_f32(workload);
  for (Step& step : workload.steps) {
    std::vector<Op> ops;
    for (Op& op : step.ops) {
      auto* grad = std::get_if<ConvolutionGrad>(&op);
      const bool is_wide =
          grad != nullptr && grad->dw != none && workload[grad->dw].type == Type::f32;
      const Type type = is_wide ? workload[grad->x].type : Type::f32;
      const Id dw = is_wide ? grad->dw : none;
      if (type != Type::f32 && !needed.contains(dw)) {
        workload.tensors[static_cast<std::size_t>(dw)].type = type;
      } else if (type != Type::f32) {
        grad->dw = static_cast<Id>(std::ssize(workload.tensors));
        Tensor narrow = workload[dw];
        narrow.name += " ";
        narrow.name += to_string(type);
        narrow.type = type;
        narrow.role = Role::activation;
        workload.tensors.push_back(std::move(narrow));
      }
      const Id written = is_wide ? grad->dw : none;
      ops.push_back(std::move(op));
      if (written != dw) {
        ops.emplace_back(Cast{.x = written, .y = dw});
      }
    }
    step.ops = std::move(ops);
  }
  return workload;
}

}  // namespace crossover::cuda
