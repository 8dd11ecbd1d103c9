// SPDX-License-Identifier: Apache-2.0
// The JSON that people commit: valid after every row, and never at the cost of an older file. Its
// format: results/README.md.
#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/times.h"
#include "file/earlier_run.h"
#include "file/write_lock.h"
#include "rows/row.h"

namespace crossover::bench {

/// Where a file that is asked for lies: a link is followed.
std::filesystem::path resolved(const std::filesystem::path& asked);

struct ResultLocks {
  bool is_new = false;  ///< there was no file of that name
  std::vector<WriteLock> of;
};

/// For this run alone, before anything of it is read. UsageError where another run writes it, and
/// on what is no regular file or, unless the run `goes_on`, no result file.
ResultLocks lock_results(const std::filesystem::path& path, bool goes_on);

/// Format: results/README.md. While a run goes on the rows stand in the file itself where it is
/// new, and in FILE.partial where one stood there before, which is replaced only by a complete run.
class ResultFile {
 public:
  /// Writes a file without rows, or with those of the `earlier` run that this one goes on with, to
  /// find out now whether it can be written: UsageError where not. `path` and `locks`: as
  /// resolved() and lock_results() give them. It refuses to empty a FILE.partial that has rows of
  /// an interrupted run. On SIGINT and SIGTERM the process says where the finished rows are and
  /// ends; at most one such file is open in a process. `spent` is read whenever the file is
  /// written.
  ResultFile(std::filesystem::path path, ResultLocks locks, nlohmann::ordered_json context,
             const Spent& spent, std::optional<EarlierRun> earlier = std::nullopt);
  ResultFile(const ResultFile&) = delete;
  ResultFile& operator=(const ResultFile&) = delete;
  ~ResultFile();

  /// A row and its entries of `benchmarks`, a line each, in the place of what there was of that
  /// name; the file is on disk and valid when this returns; unless it must be there `now`, within a
  /// second or with the next row. Throws std::runtime_error.
  void put(WrittenRow row, bool now = true);

  /// Into context.crossover, with the next row.
  void note(const std::string& field, nlohmann::ordered_json value);

  /// `complete`: every row is in the file. `successful`: it takes the place of an older file.
  /// Returns where the rows are.
  std::filesystem::path finish(bool complete, bool successful);
  /// All that was put and noted is on disk.
  void write();

 private:
  std::filesystem::path path_;     ///< as asked for
  ResultLocks locks_;              ///< of what stood there at first
  std::filesystem::path current_;  ///< where the rows are now
  nlohmann::ordered_json context_;
  const Spent& spent_;
  std::vector<WrittenRow> rows_;
  Instant written_;                ///< when it was, last
  double seconds_of_writing_ = 0;  ///< that this took
  int locked_ = -1;                ///< the file as it is on disk, which no other run may take
  std::size_t earlier_rows_ = 0;   ///< so many of the first are an earlier run's
};

// ---- A row as the file has it.

/// Facts stand once; the repetitions have what another run would measure differently.
WrittenRow written_row(const std::string& name, const Row& row);

/// What written_row() has of a measured row, without warnings that the plan has anyway; of any
/// other row nothing. UsageError where it is no such row.
Record record_in(const WrittenRow& written, const std::vector<std::string>& planned_warnings);

/// Whole numbers as they are, of others six digits: no clock is steadier than a millionth. Null
/// where JSON has no such number.
nlohmann::ordered_json number_json(double value);

}  // namespace crossover::bench
