// SPDX-License-Identifier: Apache-2.0
#include "threads.h"

#include <omp.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <set>
#include <vector>

#include "crossover/machine.h"

#ifdef __SSE3__
#include <pmmintrin.h>
#include <xmmintrin.h>
#endif

namespace crossover {

// ---- Thread settings

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

/// Places may overlap.
int processors_in_places() {
  std::set<int> all;
  for (int place = 0; place < omp_get_num_places(); ++place) {
    std::vector<int> own(static_cast<std::size_t>(omp_get_place_num_procs(place)));
    omp_get_place_proc_ids(place, own.data());
    all.insert(own.begin(), own.end());
  }
  return static_cast<int>(all.size());
}

}  // namespace

ThreadSettings thread_settings() {
  return {.wait_policy = wait_policy(),
          .binding = binding(),
          .places = omp_get_num_places(),
          .processors = processors_in_places(),
          .flush_denormals = cpu::can_flush_denormals()};
}

}  // namespace crossover

namespace crossover::cpu {

// ---- Denormals

bool can_flush_denormals() {
#ifdef __SSE3__
  return true;
#else
  return false;
#endif
}

void flush_denormals(int threads) {
#ifdef __SSE3__
#pragma omp parallel num_threads(threads)
  {
    _MM_SET_FLUSH_ZERO_MODE(_MM_FLUSH_ZERO_ON);
    _MM_SET_DENORMALS_ZERO_MODE(_MM_DENORMALS_ZERO_ON);
  }
#else
  static_cast<void>(threads);
#endif
}

}  // namespace crossover::cpu
