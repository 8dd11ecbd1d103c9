// SPDX-License-Identifier: Apache-2.0
#include "crossover/random.h"

namespace crossover {

StartValues::StartValues(const Workload& workload, Id parameter)
    : start_(workload[parameter].start),
      size_(static_cast<std::size_t>(elements(workload[parameter].shape))) {
  for (Id id = 0; id < parameter; ++id) {
    if (workload[id].role == Role::parameter) {
      position_ += static_cast<std::uint64_t>(elements(workload[id].shape));
    }
  }
}

}  // namespace crossover
