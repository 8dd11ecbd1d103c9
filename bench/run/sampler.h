// SPDX-License-Identifier: Apache-2.0
// Repetitions of rows, one at a time, so that those of several rows can alternate: each is one call
// of Google Benchmark, which holds the clock.
#pragma once

#include <benchmark/benchmark.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "file/reporter.h"
#include "rows/row.h"
#include "run/companion.h"
#include "run/spent.h"

namespace crossover::bench {

class Sampler {
 public:
  /// `min_time_seconds`: of one repetition of rows that have none of their own. `companion`, where
  /// there is one, has a turn after each repetition, but of quiet rows.
  Sampler(Rows& rows, Reporter& reporter, Spent& spent, double min_time_seconds,
          const Companion* companion = nullptr)
      : rows_(rows),
        reporter_(reporter),
        spent_(spent),
        min_time_seconds_(min_time_seconds),
        companion_(companion) {}

  /// One more repetition; before its first the row is made and verified. Its seconds per iteration;
  /// none where the row failed or was skipped, now or before (the row's result says why). The first
  /// repetition settles the number of iterations.
  std::optional<double> repeat(const std::string& name);

  /// The row's repetitions go to the reporter (file, terminal); what it holds is freed. Nothing
  /// where there are no new ones. Further repetitions make it anew, and are reported, behind the
  /// earlier ones, by another call: where these can't be had (no memory, the GPU is lost) the row
  /// stays as it was reported; wrong results make it a failure.
  void finish(const std::string& name);

  /// As if the row had had no turn yet.
  void forget(const std::string& name);

  /// Repetitions of a row so far, with the one that failed.
  [[nodiscard]] const std::vector<Repetition>& repetitions(const std::string& name) {
    return taken_[name];
  }

 private:
  struct Reported {
    std::size_t repetitions = 0;
    Result result;  ///< the row's, with these
  };

  Rows& rows_;
  Reporter& reporter_;
  Spent& spent_;
  double min_time_seconds_;
  const Companion* companion_;
  std::map<std::string, std::vector<Repetition>> taken_;
  std::map<std::string, Reported> reported_;
  std::string last_;  ///< whose turn it was
};

}  // namespace crossover::bench
