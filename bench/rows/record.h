// SPDX-License-Identifier: Apache-2.0
// What is known of a row once it has had a turn: the one holder of its facts and of its times, from
// the worker's answers to the result file.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "command_line/axes.h"

namespace crossover::bench {

enum class Outcome { measured, failed, skipped };
std::string to_string(Outcome outcome);

struct Repetition {
  double seconds = 0, cpu_seconds = 0;  ///< of one iteration, by the wall clock and the processor's
  std::int64_t iterations = 0;
  int instance = 0;  ///< of the row's program: the n-th that was made, from 0
  /// What was measured in it; in the first also what was measured once.
  std::map<std::string, double> counters;
};

/// Whether others had the processors so long that its time says more of them than of the row.
bool is_disturbed(const Repetition& repetition);

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
  /// What execution:auto came to; empty: nothing was to be chosen.
  [[nodiscard]] Configuration chosen() const;
  /// Of the repetitions, in their order.
  [[nodiscard]] std::vector<double> seconds() const;
  [[nodiscard]] int disturbed_repetitions() const;
};

}  // namespace crossover::bench
