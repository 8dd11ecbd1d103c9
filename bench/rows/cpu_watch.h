// SPDX-License-Identifier: Apache-2.0
// The processors around the timed loops of a row: how long its threads were ready to run, and had
// to wait because others ran. Linux counts that for each thread (scheduler statistics, proc(5));
// what a hypervisor took from all processors it counts in hundredths of a second.
#pragma once

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <optional>

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

}  // namespace crossover::bench
