// SPDX-License-Identifier: Apache-2.0
// Questions about a Workload's table of tensors.
#include <stdexcept>

#include "crossover/training.h"

namespace crossover {

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

std::int64_t parameter_count(const Workload& workload) {
  std::int64_t count = 0;
  for (const Id id : tensors_of(workload, Role::parameter)) {
    count += elements(workload[id].shape);
  }
  return count;
}

}  // namespace crossover
