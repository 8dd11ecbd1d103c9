// SPDX-License-Identifier: Apache-2.0
// Each probe of a GPU, for tests on the emulated and on real ones.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "crossover/probe.h"

namespace crossover::test {

struct ProbeCase {
  std::string name;
  ProbeSpec spec;
  bool has_result = true;  ///< bytes or numbers that a check can find wrong

  friend std::ostream& operator<<(std::ostream& out, const ProbeCase& c) { return out << c.name; }
};

/// `small`: to be repeated for each call that may fail.
inline std::vector<ProbeCase> probe_cases(bool small) {
  const std::int64_t many = small ? 1003 : 100'003;
  std::vector<ProbeCase> all{{"fma_1", FmaProbe{.values = 1, .length = 1}},
                             {"fma_2000", FmaProbe{.values = 2000, .length = 77}},
                             {"triad_1", TriadProbe{.values = 1}},
                             {"triad_many", TriadProbe{.values = many}},
                             {"launch", LaunchProbe{}, false},
                             {"launches_3", LaunchProbe{.launches = 3}, false},
                             {"graph_1", GraphNodeProbe{.nodes = 1}, false},
                             {"graph_5", GraphNodeProbe{.nodes = 5}, false},
                             {"synchronize", SynchronizeProbe{}, false}};
  for (const Precision precision :
       {Precision::f32, Precision::tf32, Precision::bf16, Precision::f16}) {
    const bool any_size = storage_of(precision) == Type::f32;
    for (const std::int64_t size : {any_size ? 33 : 128, any_size ? 128 : 256}) {
      if (!small || size <= 33 || (!any_size && size == 128)) {
        all.push_back({"matrix_" + to_string(precision) + "_" + std::to_string(size),
                       MatrixProbe{.precision = precision, .size = size}});
      }
    }
  }
  for (const auto& [name, direction] : {std::pair{"up", Direction::host_to_device},
                                        {"down", Direction::device_to_host},
                                        {"both", Direction::both},
                                        {"within", Direction::device_to_device}}) {
    for (const HostMemory memory : {HostMemory::pageable, HostMemory::pinned}) {
      for (const bool asynchronous : {false, true}) {
        all.push_back({std::string("copy_") + name +
                           (memory == HostMemory::pinned ? "_pinned" : "_pageable") +
                           (asynchronous ? "_async" : ""),
                       CopyProbe{.direction = direction,
                                 .memory = memory,
                                 .asynchronous = asynchronous,
                                 .bytes = many}});
      }
    }
  }
  return all;
}

}  // namespace crossover::test
