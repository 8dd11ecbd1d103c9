// SPDX-License-Identifier: Apache-2.0
#include "rows/row_context.h"

#include "rows/families.h"
#include "rows/training.h"

namespace crossover::bench {

RowContext::RowContext(const Arguments& its_arguments, Devices& its_devices)
    : arguments(its_arguments), devices(its_devices) {}

RowContext::~RowContext() = default;

Training& RowContext::training_of(const Configuration& row) {
  const std::string& family = value_of(row, "family");
  std::unique_ptr<Training>& training = trainings_[family];
  if (training == nullptr) {
    training = std::make_unique<Training>(arguments, find_family(family).trains);
  }
  return *training;
}

std::string RowContext::network_of(const Configuration& row) const {
  const std::optional<Task> task = find_task(arguments, value_or_unsaid(row, "model"));
  return task ? network_fingerprint(*task) : "";
}

}  // namespace crossover::bench
