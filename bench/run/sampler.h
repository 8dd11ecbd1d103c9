// SPDX-License-Identifier: Apache-2.0
// Repetitions of rows, one at a time, so that those of several rows can alternate. A worker takes
// them; here they are asked for, kept, and handed to the reporter.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "file/reporter.h"
#include "rows/row.h"
#include "run/spent.h"
#include "worker/worker.h"

namespace crossover::bench {

class Sampler {
 public:
  /// `worker`: of the rows that have none of their own. `min_time_seconds`: of one repetition of
  /// rows that have none of their own.
  Sampler(Rows& rows, Reporter& reporter, Spent& spent, double min_time_seconds, Worker& worker)
      : rows_(rows),
        reporter_(reporter),
        spent_(spent),
        min_time_seconds_(min_time_seconds),
        worker_(worker) {}

  /// One more repetition; before its first the row is made and verified. Its seconds per iteration;
  /// none where the row failed or was skipped, now or before (its record says why). The first
  /// repetition settles the number of iterations.
  std::optional<double> repeat(const std::string& name);

  /// The row goes to the reporter (file, terminal); what it holds is freed. Nothing where it has
  /// had no new turn. Further repetitions make it anew, and are reported, behind the earlier ones,
  /// by another call: where these can't be had (no memory, the GPU is lost) the row stays as it was
  /// reported; wrong results make it a failure.
  void finish(const std::string& name);

  /// As if the row had had no turn yet.
  void forget(const std::string& name);

 private:
  struct Reported {
    std::size_t turns = 0;
    Record record;
  };

  [[nodiscard]] Worker& worker_of(const Row& row) {
    return row.worker != nullptr ? *row.worker : worker_;
  }
  /// The worker's answer. One that has ended takes with it what it had prepared, and fails the row.
  Json ask(Row& row, const Json& request);
  /// Takes over how the row ended, if the answer says so.
  static bool ended(Row& row, const Json& answer);
  bool prepare(const std::string& name, Row& row);
  void release(const std::string& name, Row& row);

  Rows& rows_;
  Reporter& reporter_;
  Spent& spent_;
  double min_time_seconds_;
  Worker& worker_;
  std::map<Worker*, std::set<std::string>> prepared_;  ///< rows, by who holds them
  std::map<std::string, Reported> reported_;
  std::map<std::string, std::map<std::string, double>> once_;  ///< for a row's next repetition
  std::string last_;                                           ///< whose turn it was
};

}  // namespace crossover::bench
