// SPDX-License-Identifier: Apache-2.0
// Several ranks as one worker: its rank 0 answers requests, the others follow. bench starts them
// with mpirun, or mpirun or srun has started bench itself.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "command_line/arguments.h"
#include "crossover/ranks.h"
#include "crossover/shared_training.h"
#include "rows/row.h"
#include "worker/worker.h"

namespace crossover::bench {

/// A worker for each number of ranks, started by mpirun when it is first asked.
class RankWorkers {
 public:
  /// `words`: the command line without the program.
  explicit RankWorkers(std::vector<std::string> words) : words_(std::move(words)) {}

  /// Gives rows of several ranks their workers. Throws UsageError where none can be started.
  void give_workers(Rows& rows, const std::vector<std::string>& names);

 private:
  Worker& of(int ranks);

  const std::vector<std::string> words_;
  std::map<int, std::unique_ptr<WorkerProcess>> workers_;
};

/// The ranks that a launcher started this process as one of; none of a process alone. Where they
/// are not the same program with the same command line, or, unless they may be `mixed`, on the same
/// kind of processor with as many cores, says so and ends them all.
std::unique_ptr<Ranks> joined_ranks(const std::vector<std::string>& words, bool mixed);

/// Of a bench that mpirun started: its rows are those of all its ranks. UsageError where --ranks
/// says something else.
void take_launched_ranks(const Ranks& ranks, Arguments& arguments);

/// On rank 0, at the end of its life: the others are told that no more follows.
class EndOfFollowing {
 public:
  explicit EndOfFollowing(Ranks* ranks) : ranks_(ranks) {}
  EndOfFollowing(const EndOfFollowing&) = delete;
  EndOfFollowing& operator=(const EndOfFollowing&) = delete;
  ~EndOfFollowing() {
    if (ranks_ != nullptr) {
      end_following(*ranks_);
    }
  }

 private:
  Ranks* const ranks_;
};

/// On a rank that follows: does what rank 0 does, to the end. Where it fails, it answers for all on
/// `answers_to`, unless that is below 0, and ends all.
void follow_rows(Ranks& ranks, const Arguments& arguments, Devices& devices, int answers_to);

}  // namespace crossover::bench
