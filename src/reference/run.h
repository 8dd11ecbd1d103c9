// SPDX-License-Identifier: Apache-2.0
// One run of a step, as the operations that compute it in float64 see it.
#pragma once

#include <cstdint>
#include <vector>

#include "crossover/reference.h"
#include "crossover/step.h"

namespace crossover {

class ReferenceRun {
 public:
  /// `position` in the order of the Workload; `values` by tensor.
  ReferenceRun(const Workload& workload, std::vector<std::vector<double>>& values,
               std::int64_t position, const SumOverRanks& sum)
      : workload_(workload),
        values_(values),
        sum_(sum),
        position_(position),
        first_row_(workload.order[static_cast<std::size_t>(position)].first_row) {}

  [[nodiscard]] std::int64_t position() const { return position_; }
  [[nodiscard]] const Shape& shape(Id id) const { return workload_[id].shape; }
  [[nodiscard]] std::int64_t size(Id id) const { return elements(shape(id)); }

  /// The first element of a tensor; of a view, in its source.
  [[nodiscard]] double* at(Id id);

  /// The value as that tensor stores it.
  [[nodiscard]] double stored(Id id, double value) const;

  /// Its values become their sums over all ranks. Throws std::logic_error of a process alone.
  void sum_over_ranks(Id id);

  /// Whatever is stored in 16 bits holds numbers of that type: rounds what `op` has written.
  void store(const Op& op);

 private:
  const Workload& workload_;
  std::vector<std::vector<double>>& values_;
  const SumOverRanks& sum_;
  std::int64_t position_;
  std::int64_t first_row_;
};

}  // namespace crossover
