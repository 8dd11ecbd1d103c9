// SPDX-License-Identifier: Apache-2.0
#include "rows/families.h"

#include <algorithm>

namespace crossover::bench {

const std::vector<BenchmarkFamily>& families() {
  static const std::vector<BenchmarkFamily> all{
      {"Peak", register_peaks},   {"Copy", register_copies},  {"Gemm", register_gemms},
      {"Layer", register_layers}, {"Epoch", register_epochs}, {"Minibatch", register_minibatches},
  };
  return all;
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
