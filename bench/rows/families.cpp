// SPDX-License-Identifier: Apache-2.0
#include "rows/families.h"

namespace crossover::bench {

const std::vector<BenchmarkFamily>& families() {
  static const std::vector<BenchmarkFamily> all{
      {"Peak", register_peaks},   {"Copy", register_copies},  {"Gemm", register_gemms},
      {"Layer", register_layers}, {"Epoch", register_epochs}, {"Minibatch", register_minibatches},
  };
  return all;
}

}  // namespace crossover::bench
