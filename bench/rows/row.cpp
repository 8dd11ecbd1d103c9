// SPDX-License-Identifier: Apache-2.0
#include "rows/row.h"

#include <utility>

namespace crossover::bench {
std::string row_name(const Configuration& configuration) {
  std::string name;
  for (const auto& [key, value] : configuration) {
    if (name.empty()) {
      name = value;
    } else {
      name.append("/").append(key).append(":").append(value);
    }
  }
  return name;
}

void Rows::add(Row row) {
  row.configuration = in_order(row.configuration);
  const std::string name = row_name(row.configuration);
  if (rows_.emplace(name, std::move(row)).second) {
    names_.push_back(name);
  }
}

}  // namespace crossover::bench
