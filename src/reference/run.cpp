// SPDX-License-Identifier: Apache-2.0
#include "run.h"

#include "crossover/float16.h"

namespace crossover {

double* ReferenceRun::at(Id id) {
  const Tensor& tensor = workload_[id];
  if (tensor.role == Role::input) {
    const std::int64_t row = elements(tensor.shape) / tensor.shape[0];
    return values_[static_cast<std::size_t>(tensor.source)].data() + first_row_ * row;
  }
  return values_[static_cast<std::size_t>(id)].data();
}

void ReferenceRun::store(const Op& op) {
  for (const Id id : operands(op).writes) {
    const Type type = workload_[id].type;
    if (!is_16_bit(type)) {
      continue;
    }
    double* values = at(id);
    const std::int64_t count = size(id);
#pragma omp parallel for simd schedule(static) if (count > 100000)
    for (std::int64_t i = 0; i < count; ++i) {
      values[i] = type == Type::bf16 ? rounded_to_bf16(values[i]) : rounded_to_f16(values[i]);
    }
  }
}

}  // namespace crossover
