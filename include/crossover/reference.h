// SPDX-License-Identifier: Apache-2.0
// The definition of every operation: a plain, slow float64 interpreter of Workloads.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "crossover/step.h"

namespace crossover {

/// Makes of the values their sums over all ranks, as each rank calls it.
using SumOverRanks = std::function<void(std::span<double> values)>;

class Reference {
 public:
  /// All tensors start at zero. Throws std::invalid_argument on a Workload that does not check().
  /// `sum`: what an AllReduce does; none where the Workload has none.
  explicit Reference(Workload workload, SumOverRanks sum = nullptr);

  /// The values of a tensor. Labels and other whole numbers are stored as doubles, too.
  /// A view (Role::input) has none of its own: write its source. Nor has an activation or a
  /// gradient that no operation uses.
  [[nodiscard]] std::span<double> operator[](Id id);

  /// The values as an operation at that position of the order reads them: of a view its rows.
  [[nodiscard]] std::span<const double> read(Id id, std::int64_t position);

  /// Runs positions [first, first + count) of the order.
  void run(std::int64_t first, std::int64_t count);

  /// Runs one operation of the step at a position of the order, of rows as they lie.
  void run_operation(std::int64_t position, std::size_t operation);

  [[nodiscard]] const Workload& workload() const { return workload_; }

 private:
  void bring_rows(std::int64_t position);

  Workload workload_;
  SumOverRanks sum_;
  std::vector<std::vector<double>> values_;
};

/// Bytes that a Reference for the Workload takes.
std::int64_t reference_bytes(const Workload& workload);

}  // namespace crossover
