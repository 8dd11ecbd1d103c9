// SPDX-License-Identifier: Apache-2.0
#include "narrow.h"

#include <algorithm>
#include <map>
#include <set>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace crossover::cuda {

// ---- Narrow gradients

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

// ---- Parameter copies

namespace {

/// Whether the operation is an optimizer that trains it.
bool trains(const Op& op, Id parameter) {
  const auto* update = std::get_if<Update>(&op);
  return update != nullptr &&
         std::count(update->parameters.begin(), update->parameters.end(), parameter) == 1;
}

class Candidates {
 public:
  explicit Candidates(const Workload& workload) : workload_(workload) {
    for (const Step& step : workload.steps) {
      for (const Op& op : step.ops) {
        add(op);
      }
    }
    for (const Step& step : workload.steps) {
      see(step);
    }
  }

  [[nodiscard]] std::vector<CopiedParameter> accepted() const {
    std::vector<CopiedParameter> all;
    for (const auto& [copy, parameter] : parameter_of_) {
      if (!refused_.contains(copy) && updated_.contains(parameter)) {
        all.push_back({parameter, copy});
      }
    }
    return all;
  }

 private:
  /// The first copy of a parameter may be one, others are not.
  void add(const Op& op) {
    const auto* cast = std::get_if<Cast>(&op);
    if (cast == nullptr || workload_[cast->x].role != Role::parameter ||
        workload_[cast->y].role != Role::activation || !is_16_bit(workload_[cast->y].type)) {
      return;
    }
    const Id first = copy_of_.try_emplace(cast->x, cast->y).first->second;
    if (first == cast->y) {
      parameter_of_.try_emplace(cast->y, cast->x);
    }
  }

  [[nodiscard]] bool is_its_cast(const Op& op, Id copy) const {
    const auto* cast = std::get_if<Cast>(&op);
    return cast != nullptr && cast->y == copy && cast->x == parameter_of_.at(copy);
  }

  void see(const Step& step) {
    std::set<Id> as_the_parameter;  // copies that were cast and still are what they were cast from
    std::set<Id> unread;            // those of them that nothing has read yet
    for (const Op& op : step.ops) {
      const Operands used = operands(op);
      for (const Id id : used.reads) {
        if (parameter_of_.contains(id) && !as_the_parameter.contains(id)) {
          refused_.insert(id);
        }
        unread.erase(id);
      }
      for (const Id id : used.writes) {
        if (parameter_of_.contains(id)) {
          if (!is_its_cast(op, id)) {
            refused_.insert(id);
          }
          as_the_parameter.insert(id);
          unread.insert(id);
        } else if (const auto copy = copy_of_.find(id); copy != copy_of_.end()) {
          if (trains(op, id)) {
            updated_.insert(id);
          } else {
            refused_.insert(copy->second);
          }
          as_the_parameter.erase(copy->second);
        }
      }
    }
    refused_.insert(unread.begin(), unread.end());
  }

  const Workload& workload_;
  std::map<Id, Id> copy_of_;       ///< by parameter
  std::map<Id, Id> parameter_of_;  ///< by copy
  std::set<Id> refused_;           ///< copies
  std::set<Id> updated_;           ///< parameters
};

}  // namespace

std::vector<CopiedParameter> choose_parameter_copies(const Workload& workload) {
  return Candidates(workload).accepted();
}

}  // namespace crossover::cuda
