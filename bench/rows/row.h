// SPDX-License-Identifier: Apache-2.0
// A row of the results: what a family of benchmarks plans, and what is known of it. Its
// configuration says all that it is made from: a worker makes it from that alone.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "axes/axes.h"
#include "crossover/verify.h"
#include "rows/devices.h"

namespace crossover::bench {

class Worker;

/// "Epoch/model:disc-2/batch:100": its family, then what its axes say.
std::string row_name(const RowSpec& spec);

/// How the reason begins of rows that were skipped because their GPU was lost before.
inline constexpr const char* after_failed_gpu = "the GPU failed in an earlier row: ";

/// What one iteration of a row takes at least, counted, not measured.
struct MinimumWork {
  double flops = 0;
  double memory_bytes = 0;  ///< that no cache can save
  double bytes_to_device = 0;
  double bytes_from_device = 0;
  double launches = 0;
  bool graph = false;  ///< the launches are nodes of CUDA graphs
};

/// How a row's results were compared with a reference, before it was timed.
struct RowVerification {
  std::string reference;  ///< "float64 interpreter"; empty: the row's own check() is all there is
  std::string unit;       ///< what was compared: "steps" or "entries"; empty: every byte
  std::int64_t compared = 0, of = 0;  ///< so many, of so many
  double tolerance = 0;
  double error = 0;  ///< the largest, relative
  /// What else the file says of it (results/README.md).
  nlohmann::ordered_json more = nlohmann::ordered_json::object();

  /// What the verification of a program in that precision took into account.
  void take(const Arithmetic& arithmetic, Precision precision) {
    if (precision == Precision::tf32) {
      more["tf32_factors"] = to_string(arithmetic.tf32);
    }
  }
};

/// What the first steps of a verified instance came to. A later one does the same arithmetic on the
/// same numbers, so it must come to it too.
struct FirstSteps {
  std::vector<double> losses;  ///< of each step, from the deterministic start
  std::vector<double> norms;   ///< of each parameter tensor after them
};

/// What the making of a row found out. Google Benchmark has the times.
struct Result {
  std::string label;       ///< what the name does not say
  std::string workload;    ///< fingerprint of what is trained; empty: not told
  bool has_steps = false;  ///< of a network: their energy is counted
  std::map<std::string, double> counters;
  std::optional<RowSpec> chosen;  ///< what execution:auto came to; none: nothing was to be chosen
  std::optional<GraphForm> graph_form;  ///< what a GPU's graphs came to; none: there are none
  std::map<std::string, std::int64_t> library_engines;  ///< see ProgramFacts
  RowVerification verification;
  std::optional<FirstSteps> first_steps;    ///< of an instance that was verified; none: none was
  std::int64_t iterations = 0;              ///< of a repetition; 0: the first is to settle them
  std::optional<Mismatch> not_verified;     ///< none: the results are right
  std::optional<MinimumWork> minimum_work;  ///< of one iteration; none: not counted
  double verification_seconds = 0, profile_seconds = 0;  ///< that these took so far
  /// Whom to tell what the making is at, so that it does not seem to hang: "verifying it".
  std::function<void(const std::string& doing)> tell = [](const std::string&) {};
};

/// Runs a row's verification. A Mismatch is noted, so that the row can be made and timed all the
/// same, as one that is not verified. Returns the seconds that it took, which the result counts.
double verify_or_note(Result& result, const std::function<void()>& verify);

/// In an exception's handler: how that ends a row, as a worker answers it (docs/protocol.md).
nlohmann::ordered_json ended_by_exception();

/// What is timed, compiled and verified: whatever it needs is allocated and decided.
class PreparedBenchmark {
 public:
  PreparedBenchmark() = default;
  PreparedBenchmark(const PreparedBenchmark&) = delete;
  PreparedBenchmark& operator=(const PreparedBenchmark&) = delete;
  virtual ~PreparedBenchmark() = default;

  /// Before each repetition; not timed.
  virtual void start() {}
  /// One iteration: returns when it is done.
  virtual void run() = 0;
  /// Whether an iteration changes what it reads, so that restore() comes before each one, and only
  /// the iterations themselves are timed.
  [[nodiscard]] virtual bool restores() const { return false; }
  virtual void restore() {}
  /// Before the clock starts: so many iterations follow, and nothing else.
  virtual void expect(std::int64_t /*iterations*/) {}
  /// Behind them, where several ranks ran them: the seconds of each but the first, whose clock
  /// counts them.
  virtual std::vector<double> seconds_of_ranks() { return {}; }
  /// After each repetition, not timed: throws std::runtime_error where the results are wrong.
  virtual void check() {}
};

/// The counters of a Program's profile, taken again after repetitions because the machine's speed
/// drifts: a profile is only comparable with a time of its own moment.
class RowProfile {
 public:
  explicit RowProfile(Result& result) : result_(result), iterations_(result.iterations) {}

  /// After a repetition of that time, if it costs little.
  void take(Program& program, double timed_seconds);

 private:
  Result& result_;
  std::int64_t iterations_;  ///< of each repetition; 0: not settled when it was made
  double timed_seconds_ = 0;
  double profiled_seconds_ = 0;
};

// ---- What is known of a row once it has had a turn: the one holder of its facts and of its times,
// from the worker's answers to the result file.

enum class Outcome { measured, failed, skipped };
std::string to_string(Outcome outcome);

struct Repetition {
  double seconds = 0, cpu_seconds = 0;  ///< of one iteration, by the wall clock and the processor's
  std::int64_t iterations = 0;
  int instance = 0;  ///< of the row's program: the n-th that was made, from 0
  /// What was measured in it; in the first also what was measured once.
  std::map<std::string, double> counters;
};

struct Record {  // NOLINT(bugprone-exception-escape): a destructor of nlohmann's allocates
  Outcome outcome = Outcome::measured;
  std::string reason;          ///< why it is not measured
  bool out_of_memory = false;  ///< why it was skipped
  bool ended_worker = false;   ///< why it failed: its process ended, hung, or lost the GPU
  /// Of one whose results are wrong: `seconds` of an iteration, `error` and `tolerance` as far as
  /// they are known. Null: they are right, or nobody looked.
  nlohmann::ordered_json not_verified;
  int instances = 0;                                                ///< of its program so far
  nlohmann::ordered_json facts = nlohmann::ordered_json::object();  ///< as the file has them
  std::vector<std::string> doubts;  ///< that came up while it was measured, a sentence each
  std::vector<Repetition> repetitions;

  [[nodiscard]] bool has_had_a_turn() const {
    return outcome != Outcome::measured || !repetitions.empty();
  }
  /// What execution:auto came to; none: nothing was to be chosen.
  [[nodiscard]] std::optional<RowSpec> chosen() const;
  /// Of the repetitions, in their order.
  [[nodiscard]] std::vector<double> seconds() const;
};

/// What a row costs, as far as it is known.
struct RowCosts {
  double first_making = 0;       ///< seconds, with the verification
  std::optional<double> making;  ///< of one more instance
  double repetition = 0;         ///< of the last one, with all around it
};

/// How far a row has come in a sweep. In seconds.
struct Turns {
  int kept = 0;                 ///< repetitions of an earlier run
  int wanted = 0;               ///< repetitions, before it is shown; 0: whatever it has
  double planned = 0;           ///< with what the row is the first to need
  std::optional<double> first;  ///< its first turn in this run, with all before
  double least = 0;             ///< of the turns that it had
  double took = 0;              ///< all of these
  bool is_closed = false;       ///< no more can be had of it
  bool is_left_out = false;     ///< it gets none, as the share of other programs is used up
};

/// What was told of a row last, and what its next repetition has to tell.
struct Telling {
  std::optional<nlohmann::ordered_json> first_steps;  ///< once an instance of it was verified
  std::vector<std::string> earlier_doubts;            ///< of instances before
  std::map<std::string, double> once;                 ///< for its next repetition
  std::size_t reported_turns = 0;
  Record reported;
};

// ---- the row: what is planned, and behind it all that is known by now.

/// A guess, before it is made.
struct ExpectedSeconds {
  double all = 0;         ///< from compilation to the last repetition, of all its instances
  double repetition = 0;  ///< of these, of each repetition
};

struct Row {
  RowSpec spec;
  Device* device = nullptr;
  int repetitions = 0;           ///< 0: as many as the sweep's
  double min_time_seconds = 0;   ///< of one repetition; 0: the sweep's
  ExpectedSeconds expected;      ///< a guess, for the time left and for a plan
  std::string reference;         ///< what rows share that is computed once; empty: nothing
  double reference_seconds = 0;  ///< a guess at the time of that
  Worker* worker = nullptr;      ///< another program that measures it; null: bench's own
  std::string lead;              ///< the row of ours beside which it does
  std::string network;           ///< fingerprint of the one it is of; empty: of none
  std::string label;  ///< what the name does not say; empty: nothing, or nobody knows yet
  /// What such a program needs to know of the network (families/networks.h); empty: nothing.
  std::function<nlohmann::ordered_json()> network_facts = nullptr;
  bool reported_by_caller = false;    ///< who measures it tells of it, but for a failure
  std::vector<std::string> warnings;  ///< what casts doubt on the figures, a sentence each

  Record record;
  RowCosts costs;
  Turns turns;
  Telling telling;
};

/// During which others had the processors so long that the time says more of them than of the row:
/// by the mean over its threads, and over the processors that a hypervisor took.
int disturbed_repetitions(const Row& row);

/// What casts doubt on the figures, a sentence each: warnings, and what came up while it was
/// measured.
std::vector<std::string> doubts_about(const Row& row);

/// Of these what the times say themselves: that they lie far apart, that a hypervisor took
/// processors.
std::vector<std::string> doubts_about_times(const std::vector<Repetition>& repetitions);

/// In f32, or in no precision at all.
bool is_in_f32(const Row& row);

/// Another program's, not one of bench's own that several ranks measure.
bool is_of_a_peer(const Row& row);

/// What is computed, however and wherever.
std::string work_of(const Row& row);

/// All rows by name, in the order of registration.
class Rows {
 public:
  /// Of rows of the same name the first one stays.
  void add(Row row);
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  [[nodiscard]] Row& operator[](const std::string& name) { return rows_.at(name); }
  [[nodiscard]] bool has(const std::string& name) const { return rows_.contains(name); }

 private:
  std::vector<std::string> names_;
  std::map<std::string, Row> rows_;
};

// ---- As JSON: in the worker's answers, and in the result file.

/// verification, label, workload, chosen, convolutions, minimum_work, and the counters that are
/// facts; all but the last are left out where there is nothing to tell.
nlohmann::ordered_json facts_json(const Result& result);

/// real_time, cpu_time, iterations, and as counters what other numbers there are. The times must be
/// there; which instance it was is for who asked to say.
Repetition repetition_in(const nlohmann::ordered_json& json);

/// {"losses": [0.69, ...], "norms": [1.2, ...]}, and back.
nlohmann::ordered_json first_steps_json(const FirstSteps& steps);
FirstSteps first_steps_in(const nlohmann::ordered_json& json);

}  // namespace crossover::bench
