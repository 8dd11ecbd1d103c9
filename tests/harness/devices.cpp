// SPDX-License-Identifier: Apache-2.0
// The devices of these tests: they compute nothing.
#include "crossover/backends.h"

namespace crossover {

const std::vector<BackendKind>& backends() {
  static const std::vector<BackendKind> all{
      {.name = "cpu", .word = "CPU", .has_threads = true},
      {.name = "cuda", .word = "GPU", .has_own_memory = true},
  };
  return all;
}

}  // namespace crossover
