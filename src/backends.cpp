// SPDX-License-Identifier: Apache-2.0
#include "crossover/backends.h"

#include <algorithm>
#include <stdexcept>

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

std::span<const BackendKind> other_backends() { return std::span(backends()).subspan(1); }

const BackendKind& backend_named(const std::string& name) {
  const auto at = std::find_if(backends().begin(), backends().end(),
                               [&](const BackendKind& kind) { return kind.name == name; });
  if (at == backends().end()) {
    throw std::out_of_range("no backend is called '" + name + "'");
  }
  return *at;
}

}  // namespace crossover
