// SPDX-License-Identifier: Apache-2.0
#include "crossover/random.h"

namespace crossover {

StartValues::StartValues(const Workload& workload, Id parameter)
    : start_(workload[parameter].start),
      size_(static_cast<std::size_t>(elements(workload[parameter].shape))),
      row_(size_ / static_cast<std::size_t>(workload[parameter].shape.front())) {
  for (Id id = 0; id < parameter; ++id) {
    if (workload[id].role == Role::parameter) {
      position_ += static_cast<std::uint64_t>(elements(workload[id].shape));
    }
  }
  if (start_.factor != none) {
    factors_ = StartValues(workload, start_.factor).all();
  }
  if (start_.offset != none) {
    offsets_ = StartValues(workload, start_.offset).all();
  }
}

std::vector<double> StartValues::all() const {
  std::vector<double> values(size_);
  for (std::size_t i = 0; i < size_; ++i) {
    values[i] = (*this)[i];
  }
  return values;
}

}  // namespace crossover
