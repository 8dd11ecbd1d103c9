// SPDX-License-Identifier: Apache-2.0
// A GPU around the timed loops of a row: brought to its clocks before, and its clocks and what held
// them back noted before and after. Doubts are told with the row; no row is dropped for them.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "crossover/backend.h"
#include "rows/row.h"

namespace crossover::bench {

/// machine.gpu of a result file: results/README.md.
nlohmann::ordered_json gpu_json(const Backend& gpu);

/// Runs it untimed for `seconds`, at least once, and again until `clock_mhz` is what it was before,
/// for ten times as long and longest_warm_up_seconds at most. Where no clock is told, for
/// `seconds`.
void run_until_clock_stands(PreparedBenchmark& prepared,
                            const std::function<std::optional<int>()>& clock_mhz, double seconds);

class GpuWatch {
 public:
  /// Right before and right after a timed loop; nothing on the CPU.
  void before(const Backend& backend);
  void after(const Backend& backend);

  /// Adds the clocks of the last loop: sm_clock_mhz_before, sm_clock_mhz_after.
  void count(nlohmann::ordered_json& counters) const;

  /// Over all loops so far, a sentence each.
  [[nodiscard]] std::vector<std::string> doubts() const;

 private:
  void note(const GpuState& state);

  GpuState before_, after_;
  std::optional<int> highest_possible_mhz_, lowest_mhz_, highest_mhz_;
  std::set<std::string> throttle_reasons_;
  bool is_slice_ = false;  ///< of a card
};

}  // namespace crossover::bench
