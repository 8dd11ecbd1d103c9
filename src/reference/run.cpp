// SPDX-License-Identifier: Apache-2.0
#include "run.h"

#include <stdexcept>

#include "crossover/float16.h"

namespace crossover {

double* ReferenceRun::at(Id id) {
  const Tensor& tensor = workload_[id];
  if (tensor.role == Role::input && workload_.epoch == none) {
    const std::int64_t row = elements(tensor.shape) / tensor.shape[0];
    return values_[static_cast<std::size_t>(tensor.source)].data() + first_row_ * row;
  }
  return values_[static_cast<std::size_t>(id)].data();
}

double ReferenceRun::stored(Id id, double value) const {
  switch (workload_[id].type) {
    case Type::bf16:
      return rounded_to_bf16(value);
    case Type::f16:
      return rounded_to_f16(value);
    default:
      return value;
  }
}

void ReferenceRun::sum_over_ranks(Id id) {
  if (!sum_) {
    throw std::logic_error("this reference sums over ranks, and has none");
  }
  sum_({at(id), static_cast<std::size_t>(size(id))});
}

void ReferenceRun::store(const Op& op) {
  for (const Id id : operands(op).writes) {
    if (!is_16_bit(workload_[id].type)) {
      continue;
    }
    double* values = at(id);
    const std::int64_t count = size(id);
#pragma omp parallel for schedule(static) if (count > 100000)
    for (std::int64_t i = 0; i < count; ++i) {
      values[i] = stored(id, values[i]);
    }
  }
}

}  // namespace crossover
