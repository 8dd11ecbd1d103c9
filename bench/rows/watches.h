// SPDX-License-Identifier: Apache-2.0
// What is watched around the timed loops of a row: the processors, the GPU, and the energy that
// they take.
//
// Of the processors, how long its threads were ready to run, and had to wait because others ran.
// Linux counts that for each thread (scheduler statistics, proc(5)); what a hypervisor took from
// all processors it counts in hundredths of a second.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "crossover/backend.h"
#include "rows/devices.h"
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
nlohmann::ordered_json gpu_json(const Description& gpu, const GpuState& now);

/// How long a GPU works before a row's first timed loop, and before each further one: at rest its
/// clocks fall, and they take some milliseconds to rise again. So long again while its clock moves,
/// and no longer than the last.
constexpr double first_warm_up_seconds = 0.05;
constexpr double warm_up_seconds = 0.02;
constexpr double longest_warm_up_seconds = 0.2;

/// Runs it untimed for `seconds`, at least once, and again until `clock_mhz` is what it was before,
/// for ten times as long and longest_warm_up_seconds at most. Where no clock is told, for
/// `seconds`.
void run_until_clock_stands(PreparedBenchmark& prepared,
                            const std::function<std::optional<int>()>& clock_mhz, double seconds);

class GpuWatch {
 public:
  /// Right before and right after a timed loop; nothing on the CPU.
  void before(const Device& device);
  void after(const Device& device);

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

// ---- The energy around the timed loops of a row, by the meters that the machine has. Nothing is
// estimated: where no meter can be read there is no energy, and the reason is said.

/// A counter of energy that only grows.
struct Meter {
  std::string name;    ///< "rapl package-0", or the user's command
  std::string counts;  ///< cpu, gpu or machine: the row's joules_... that it is part of
  /// Throws std::runtime_error where it does not tell.
  std::function<double()> joules;
  std::optional<double> wraps_joules =
      {};  ///< counted before it begins again at 0; none: it never does
  std::optional<double> resolution_joules = {};  ///< of one count; none: a command does not say
  /// The longest time that it was seen to stand still between two moves; none: it was not watched,
  /// or moved less than twice meanwhile.
  std::optional<double> update_seconds = {};
};

/// Of the processors' packages and the memory beside them, by Linux's power capping framework
/// (Documentation/power/powercap/powercap.rst; Intel, Software Developer's Manual, volume 3B,
/// "RAPL Interfaces"). Other domains of a package are part of it. Throws std::runtime_error where
/// there is none, or none that may be read, with what to do.
std::vector<Meter> powercap_meters(const std::string& root = "/sys/class/powercap");

/// Runs the command at each reading: it prints the joules so far of the whole machine, as a wall
/// meter or a battery counts them. Throws std::runtime_error where it does not.
Meter command_meter(const std::string& command);

/// Around a stretch of time: what the processors or, by a command, the whole machine took, and what
/// the GPU took by its driver.
class EnergyWatch {
 public:
  /// A shorter loop has no energy: a GPU's counter moves ten times a second, and the idle power
  /// before and after it is not the row's.
  static constexpr double least_seconds = 5;

  /// `command`: of --meter; empty: the meters of the processors.
  explicit EnergyWatch(const std::string& command);
  EnergyWatch(std::vector<Meter> meters, bool of_whole_machine,
              double shortest_seconds = least_seconds)
      : meters_(std::move(meters)),
        of_whole_machine_(of_whole_machine),
        shortest_seconds_(shortest_seconds) {}

  /// What a GPU took so far; none where its driver does not tell. Empty: no GPU computes.
  using GpuJoules = std::function<std::optional<double>()>;

  struct Watts {
    std::optional<double> of_meters, of_gpu;
  };

  /// Right before and right after a timed loop.
  void before(const Device& device);
  void after(const Device& device);

  /// Adds the joules of one of the `iterations` of the last loop: joules_cpu, or joules_machine by
  /// a command; joules_gpu; and joules, their sum as far as it is of all that computed. Nothing
  /// where a meter did not tell, or the loop was too short.
  void count(std::int64_t iterations, nlohmann::ordered_json& counters) const;

  /// How long each meter stands still between two moves: reads them again and again, until all have
  /// moved ten times, for `most_seconds` at most. At once where no meter tells.
  void watch_updates(double most_seconds, const GpuJoules& gpu_joules);

  /// Adds joules_error to counters with joules, where it is known: of all meters that were read
  /// around a loop of so many seconds each may have missed an update at its start and at its end.
  void count_error(double loop_seconds, std::map<std::string, double>& counters) const;

  /// Over `seconds` from now, in which nothing is measured; at once where no meter tells.
  Watts idle_watts(double seconds, const GpuJoules& gpu_joules);

  /// {"meters": [...]}, and "reason" and "gpu_reason" where a side has none; the GPU's once it was
  /// watched.
  [[nodiscard]] nlohmann::ordered_json describe() const;

 private:
  struct Readings {
    std::vector<double> joules;  ///< of each meter; empty: not all told
    std::optional<double> of_gpu;
    std::chrono::steady_clock::time_point when;
  };
  [[nodiscard]] Readings read(const GpuJoules& gpu_joules);
  [[nodiscard]] std::optional<double> between(const Readings& first, const Readings& last) const;
  /// None where the driver did not tell, or its counter was set back.
  [[nodiscard]] static std::optional<double> taken_by_gpu(const Readings& first,
                                                          const Readings& last);

  std::vector<Meter> meters_;
  std::optional<Meter> of_gpu_;  ///< none: it was not watched, or does not tell
  std::string gpu_reason_;       ///< why it does not
  bool of_whole_machine_ = false;
  double shortest_seconds_ = least_seconds;
  bool has_own_memory_ = false;  ///< the row's device, and so meters of its own
  std::string reason_;           ///< why there is no meter, or why it did not tell
  Readings before_, after_;
};

/// Null where none is wanted. `meter`: as EnergyWatch's `command`.
std::unique_ptr<EnergyWatch> energy_watch_of(bool is_wanted, const std::string& meter);

}  // namespace crossover::bench
