// SPDX-License-Identifier: Apache-2.0
// The processors around the timed loops of a row: how long its threads were ready to run, and had
// to wait because others ran. Linux counts that for each thread (scheduler statistics, proc(5));
// what a hypervisor took from all processors it counts in hundredths of a second.
#pragma once

#include <chrono>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "crossover/backend.h"
#include "rows/row.h"

namespace crossover::bench {

class CpuWatch {
 public:
  /// Right before and right after a timed loop.
  void before();
  void after();

  /// Adds what the last loop waited, as a share of its time: cpu_wait, cpu_steal; nothing where the
  /// kernel does not tell.
  void count(nlohmann::ordered_json& counters) const;

 private:
  struct Waits {
    std::optional<double> of_threads;  ///< seconds, of all threads of this process so far
    std::optional<double> stolen;      ///< seconds, of all processors
    std::chrono::steady_clock::time_point when;
  };
  static Waits now();

  Waits before_, after_;
};

/// Whether this process stood still since: it was stopped and went on (Ctrl-Z), or the machine
/// slept.
class PauseWatch {
 public:
  PauseWatch();
  [[nodiscard]] bool has_paused() const;

 private:
  int continued_;
  double slept_seconds_;
};

/// The doubt about a repetition with a pause in it.
inline constexpr const char* paused_within = "its process stood still during a repetition";

/// Share of the time of all processors that other processes have, over `seconds` from now; 0 where
/// the kernel does not tell.
double busy_share(double seconds);

// ---- A GPU around the timed loops of a row: brought to its clocks before, and its clocks and what
// held them back noted before and after. Doubts are told with the row; no row is dropped for them.

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
