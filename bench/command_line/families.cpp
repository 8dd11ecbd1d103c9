// SPDX-License-Identifier: Apache-2.0
#include "command_line/families.h"

#include <algorithm>
#include <stdexcept>

namespace crossover::bench {

const std::vector<BenchmarkFamily>& families() {
  static const std::vector<BenchmarkFamily> all{
      {.name = "Peak", .worth = 5, .bounds_others = true},
      {.name = "Copy", .worth = 1},
      {.name = "Collective", .worth = 5, .bounds_others = true},
      {.name = "Gemm", .worth = 2},
      {.name = "Layer", .worth = 3},
      {.name = "Epoch", .worth = 0, .trains = Trains::epochs},
      {.name = "Minibatch", .worth = 4, .trains = Trains::steps},
      {.name = "Command", .worth = 6},  // of other programs (docs/howto/two-programs.md)
  };
  return all;
}

const BenchmarkFamily& find_family(const std::string& name) {
  const auto at = std::find_if(families().begin(), families().end(),
                               [&](const BenchmarkFamily& family) { return family.name == name; });
  if (at == families().end()) {
    throw std::out_of_range("no family '" + name +
                            "'; add it to the table in bench/command_line/families.cpp");
  }
  return *at;
}

}  // namespace crossover::bench
