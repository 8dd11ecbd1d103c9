// SPDX-License-Identifier: Apache-2.0
#include "crossover/random.h"

namespace crossover {

std::vector<double> start_values(const Workload& workload, Id parameter) {
  std::uint64_t position = 0;
  for (Id id = 0; id < parameter; ++id) {
    if (workload[id].role == Role::parameter) {
      position += static_cast<std::uint64_t>(elements(workload[id].shape));
    }
  }
  const Tensor& tensor = workload[parameter];
  std::vector<double> values(static_cast<std::size_t>(elements(tensor.shape)), tensor.start.value);
  if (tensor.start.bound > 0) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = (2 * uniform(Stream::parameters, position + i) - 1) * tensor.start.bound;
    }
  }
  return values;
}

}  // namespace crossover
