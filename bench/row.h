// SPDX-License-Identifier: Apache-2.0
// A row of the results: what a family of benchmarks plans, makes and counts, and what the reporters
// tell of it beside Google Benchmark's own record.
#pragma once

#include <benchmark/benchmark.h>

#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ceilings.h"
#include "device.h"
#include "gpu_state.h"

namespace crossover::bench {

/// A row's configuration: keys and values in the order of its name. The common part comes first,
/// and from "device" on what differs between the sides of a comparison.
using Configuration = std::vector<std::pair<std::string, std::string>>;

/// {{"family", "Epoch"}, {"model", "disc-2"}} -> "Epoch/model:disc-2".
std::string row_name(const Configuration& configuration);

enum class Outcome { measured, failed, skipped };

/// What is timed, compiled and verified: whatever it needs is allocated and decided.
class Prepared {
 public:
  Prepared() = default;  // NOLINT(bugprone-exception-escape): an empty JSON value throws nothing
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;
  virtual ~Prepared() = default;

  /// Before each repetition; not timed.
  virtual void start() {}
  /// One iteration: returns when it is done.
  virtual void run() = 0;
  /// Behind each repetition, not timed: throws std::runtime_error where the results are wrong.
  virtual void check() {}

  // What the makers found out:
  std::map<std::string, double> counters;
  std::string label;
  nlohmann::ordered_json verification;  ///< null: the row's own check() is all there is
  Demand demand;                        ///< of one iteration
};

struct Row {
  Configuration configuration;
  Device* device = nullptr;
  int repetitions = 0;               ///< 0: as many as the sweep's
  double min_time_seconds = 0;       ///< of one repetition; 0: the sweep's
  double expected_seconds = 0;       ///< a guess, for the time left and for a plan
  std::string reference;             ///< what rows share that is computed once; empty: nothing
  double reference_seconds = 0;      ///< a guess at the time of that
  std::vector<std::string> quality;  ///< what casts doubt on the figures, a sentence each
  /// Compiles and verifies. Throws Unsupported and OutOfMemory where the row can't be had, and
  /// anything else where something is wrong.
  std::function<std::unique_ptr<Prepared>()> make;
  /// Adds the counters that follow from the wall-clock seconds of one iteration.
  void (*derive)(benchmark::UserCounters& counters, double seconds) = nullptr;
  /// The row measures a ceiling: which one, from the counters when derive() has seen them.
  std::function<void(Ceilings& ceilings, const benchmark::UserCounters& counters)> raise;

  // Filled in when it has been made and measured:
  GpuWatch gpu;
  Outcome outcome = Outcome::measured;
  nlohmann::ordered_json verification;
  Demand demand;
};

/// All rows by name, in the order of registration.
class Rows {
 public:
  /// Of rows of the same name the first one stays.
  void add(Row row);
  /// Hands the rows of these names over to Google Benchmark.
  /// `min_time_seconds`: of those that have none of their own.
  void register_benchmarks(const std::vector<std::string>& names, double min_time_seconds);
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  [[nodiscard]] Row& operator[](const std::string& name) { return rows_.at(name); }
  /// Frees what a finished row holds.
  void release(const std::string& name) { prepared_.erase(name); }

 private:
  /// Google Benchmark calls this for every trial and repetition.
  void run(benchmark::State& state, const std::string& name);
  /// Runs it untimed until a GPU's clocks have risen; nothing on the CPU.
  void warm_up(const Row& row, Prepared& prepared, bool is_first) const;
  /// Null where it can't be had; refusals_ says why.
  Prepared* prepare(const std::string& name);
  /// In an exception's handler: what it says of the row, and of its device where that is lost.
  void refuse(const std::string& name);

  double min_time_seconds_ = 0;
  std::vector<std::string> names_;
  std::map<std::string, Row> rows_;
  std::map<std::string, std::unique_ptr<Prepared>> prepared_;
  std::map<std::string, std::string> refusals_;
};

}  // namespace crossover::bench
