// SPDX-License-Identifier: Apache-2.0
#include "rows/families.h"

#include <algorithm>
#include <stdexcept>

namespace crossover::bench {

const std::vector<BenchmarkFamily>& families() {
  static const std::vector<BenchmarkFamily> all{
      {"Peak", register_peaks, 5},
      {"Copy", register_copies, 1},
      {"Gemm", register_gemms, 2},
      {"Layer", register_layers, 3},
      {"Epoch", register_epochs, 0, /*trains=*/true},
      {"Minibatch", register_minibatches, 4, /*trains=*/true},
  };
  return all;
}

const BenchmarkFamily& find_family(const std::string& name) {
  for (const BenchmarkFamily& family : families()) {
    if (family.name == name) {
      return family;
    }
  }
  throw std::out_of_range("no family '" + name +
                          "'; add it to the table in bench/rows/families.cpp");
}

Rows register_all(const Arguments& arguments, Devices& devices) {
  Rows rows;
  for (const BenchmarkFamily& family : families()) {
    const auto& wanted = arguments.families;
    if (std::find(wanted.begin(), wanted.end(), family.name) != wanted.end()) {
      family.register_rows(arguments, devices, rows);
    }
  }
  return rows;
}

}  // namespace crossover::bench
