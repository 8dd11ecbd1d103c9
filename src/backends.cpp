// SPDX-License-Identifier: Apache-2.0
#include "crossover/backends.h"

namespace crossover {

const std::vector<BackendKind>& backends() {
  static const std::vector<BackendKind> all{
      {.name = "cpu",
       .word = "CPU",
       .has_threads = true,
       .make =
           [](Ranks* /*ranks*/) {
             return FoundBackend{make_cpu_backend(), ""};
           },
       .describe = [](const std::string& /*reason*/) { return make_cpu_backend(); }},
      {.name = "cuda",
       .word = "GPU",
       .has_own_memory = true,
       .make = make_cuda_backend,
       .describe = make_planned_gpu},
  };
  return all;
}

}  // namespace crossover
