// SPDX-License-Identifier: Apache-2.0
// The devices of functions: the CPU, and a GPU that its user brings and waits for.
#include "crossover/backends.h"

namespace crossover {

const std::vector<BackendKind>& backends() {
  static const std::vector<BackendKind> all{
      {.name = "cpu", .word = "CPU", .has_threads = true},
      {.name = "gpu", .word = "GPU", .has_own_memory = true},
  };
  return all;
}

}  // namespace crossover
