// SPDX-License-Identifier: Apache-2.0
// Questions about a Workload's table of tensors.
#include <algorithm>
#include <stdexcept>

#include "crossover/training.h"

namespace crossover {

Workload unshuffled(Workload workload) {
  if (workload.epoch != none) {  // which nobody needs to start anew
    workload[workload.epoch].role = Role::activation;
    workload.epoch = none;
  }
  return workload;
}

Id find(const Workload& workload, const std::string& name) {
  for (std::size_t i = 0; i < workload.tensors.size(); ++i) {
    if (workload.tensors[i].name == name) {
      return static_cast<Id>(i);
    }
  }
  throw std::out_of_range("no tensor is called '" + name + "'");
}

std::vector<Id> tensors_of(const Workload& workload, Role role) {
  std::vector<Id> ids;
  for (std::size_t i = 0; i < workload.tensors.size(); ++i) {
    if (workload.tensors[i].role == role) {
      ids.push_back(static_cast<Id>(i));
    }
  }
  return ids;
}

std::vector<Id> views_of(const Workload& workload, const Step& step) {
  std::vector<Id> views;
  for (const Op& op : step.ops) {
    for (const Id id : operands(op).reads) {
      if (workload[id].role == Role::input &&
          std::find(views.begin(), views.end(), id) == views.end()) {
        views.push_back(id);
      }
    }
  }
  return views;
}

std::int64_t parameter_count(const Workload& workload) {
  std::int64_t count = 0;
  for (const Id id : tensors_of(workload, Role::parameter)) {
    count += elements(workload[id].shape);
  }
  return count;
}

}  // namespace crossover
