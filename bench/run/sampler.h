// SPDX-License-Identifier: Apache-2.0
// Repetitions of rows, one at a time, so that those of several rows can alternate. A worker takes
// them; here they are asked for, kept, and handed to the reporter. A row that ends its worker,
// hangs or loses the GPU fails alone: the next one finds another worker.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/times.h"
#include "file/reporter.h"
#include "rows/row.h"
#include "rows/watches.h"
#include "worker/worker.h"

namespace crossover::bench {

struct SamplerOptions {
  double min_time_seconds = 0;  ///< of one repetition of rows that have none of their own
  /// A row whose worker says nothing for so long, or for 10 times what it is expected to take if
  /// that is longer, hangs.
  double patience_seconds = unlimited;
  /// Knows how exact the meters are that workers read; null where there are none.
  const EnergyWatch* energy = nullptr;
};

class Sampler {
 public:
  /// `worker`: of the rows that have none of their own.
  Sampler(Rows& rows, Reporter& reporter, Spent& spent, Worker& worker,
          const SamplerOptions& options)
      : rows_(rows), reporter_(reporter), spent_(spent), worker_(worker), options_(options) {}

  /// One more repetition; before its first the row is made and verified. Its seconds per iteration;
  /// none where the row failed or was skipped, now or before (its record says why). The first
  /// repetition settles the number of iterations.
  std::optional<double> repeat(const std::string& name);

  /// The row goes to the reporter (file, terminal); what it holds is freed. Nothing where it has
  /// had no new turn. Further repetitions make it anew, and are reported, behind the earlier ones,
  /// by another call: where these can't be had (no memory, the GPU is lost) the row stays as it was
  /// reported; wrong results make it a failure.
  void finish(const std::string& name);

  /// What is prepared is lost: the workers' processes end, and what comes next finds new ones.
  void renew_workers();
  /// All rows are finished. Each pass but the first has new workers. `words`: "pass 2 of 9".
  void begin_pass(const std::string& words, bool is_first);

  /// As if the row had had no turn since it was reported.
  void put_back(const std::string& name);

  /// As if it had had no turn yet, but for a warning.
  void begin_anew(const std::string& name);

 private:
  [[nodiscard]] Worker& worker_of(const Row& row) {
    return row.worker != nullptr ? *row.worker : worker_;
  }
  /// The worker's answer. One that ends, or hangs, or loses the GPU takes with it what it had
  /// prepared, and fails the row.
  Json ask(Row& row, const Json& request);
  [[nodiscard]] double limit_seconds(const Row& row) const;
  /// Behind a row on a GPU that ended its worker: whether the GPU can go on.
  void look_after_gpu(Row& row, const std::string& error, double lost_seconds);
  void give_up(Device& gpu, const std::string& reason);
  /// Takes over how the row ended, if the answer says so.
  static bool ended(Row& row, const Json& answer);
  bool prepare(const std::string& name, Row& row);
  void release(const std::string& name, Row& row);

  Rows& rows_;
  Reporter& reporter_;
  Spent& spent_;
  Worker& worker_;
  SamplerOptions options_;
  std::map<Worker*, std::set<std::string>> prepared_;  ///< rows, by who holds them
  std::string last_;                                   ///< whose turn it was
  Worker* last_worker_ = nullptr;
  double lost_seconds_ = 0;  ///< in rows that ended workers
};

}  // namespace crossover::bench
