// SPDX-License-Identifier: Apache-2.0
// What the machine can do at most, as rows of the family Peak have measured it, and which of these
// ceilings bounds another row.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "crossover/tensor.h"

namespace crossover::bench {

/// What one iteration of a row takes at least, counted, not measured.
struct MinimumWork {
  std::string device;  ///< "cpu", "cuda"; empty: not counted
  Precision precision = Precision::f32;
  int threads = 0;  ///< of the CPU; 0 on a GPU
  double flops = 0;
  double memory_bytes = 0;  ///< that no cache can save
  double bytes_to_device = 0;
  double bytes_from_device = 0;
  double launches = 0;
  bool graph = false;  ///< the launches are nodes of CUDA graphs
};

/// Of seconds and rates, all per device.
enum class Ceiling {
  flops_per_second,
  memory_bytes_per_second,
  bytes_per_second_to_device,
  bytes_per_second_from_device,
  launches_per_second,
  graph_nodes_per_second,
};

/// The shortest time that a row can take, and what makes it so.
struct Bound {
  std::string name;  ///< "compute", "memory", "copy" or "launch"
  double seconds = 0;

  friend bool operator==(const Bound&, const Bound&) = default;
};

class Ceilings {
 public:
  /// Keeps the highest of what is offered. `precision` matters to flops alone; `threads` is 0 on a
  /// GPU.
  void raise(Ceiling ceiling, const std::string& device, Precision precision, int threads,
             double per_second);

  [[nodiscard]] std::optional<double> find(Ceiling ceiling, const std::string& device,
                                           Precision precision, int threads) const;

  /// The largest of the times that its parts take at their ceilings. None where no
  /// ceiling of the device's arithmetic and memory has been measured.
  [[nodiscard]] std::optional<Bound> bound(const MinimumWork& least) const;

 private:
  using Key = std::tuple<Ceiling, std::string, Precision, int>;
  std::map<Key, double> per_second_;
};

}  // namespace crossover::bench
