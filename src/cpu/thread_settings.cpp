// SPDX-License-Identifier: Apache-2.0
#include <omp.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "crossover/cpu_threads.h"
#include "denormals.h"

namespace crossover {
namespace {

/// In lower case, as OpenMP reads them; empty where it is not set.
std::string variable(const char* name) {
  const char* value = std::getenv(name);
  std::string text = value == nullptr ? "" : value;
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

/// OpenMP can't be asked; these are what its runtimes read. Of GCC's a count goes before a policy.
std::string wait_policy() {
  const std::string asked = variable("OMP_WAIT_POLICY");
  const std::string count = variable("GOMP_SPINCOUNT");
  const std::string blocks_after = variable("KMP_BLOCKTIME");
  if (count == "0" || blocks_after == "0") {
    return "passive";
  }
  if (count == "infinite" || count == "infinity" || blocks_after == "infinite") {
    return "active";
  }
  return asked == "passive" || asked == "active" ? asked : "default";
}

std::string binding() {
  switch (omp_get_proc_bind()) {
    case omp_proc_bind_false:
      return "false";
    case omp_proc_bind_true:
      return "true";
    case omp_proc_bind_master:
      return "primary";
    case omp_proc_bind_close:
      return "close";
    case omp_proc_bind_spread:
      return "spread";
    default:
      return "";
  }
}

}  // namespace

ThreadSettings thread_settings() {
  return {.wait_policy = wait_policy(),
          .binding = binding(),
          .places = omp_get_num_places(),
          .flush_denormals = cpu::can_flush_denormals()};
}

}  // namespace crossover
