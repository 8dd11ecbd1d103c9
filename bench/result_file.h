// SPDX-License-Identifier: Apache-2.0
// The JSON that people commit: valid after every row, and never at the cost of an older file.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace crossover::bench {

/// Format: results/README.md. While a run goes on the rows stand in the file itself where it is
/// new, and in FILE.partial where one stood there before, which is replaced only by a complete run.
class ResultFile {
 public:
  /// Writes a file without rows, to find out now whether it can be written: UsageError where not. A
  /// link is followed; anything else that is no regular file is refused. On SIGINT and SIGTERM the
  /// process says where the finished rows are and ends; at most one such file is open in a process.
  ResultFile(std::filesystem::path path, nlohmann::ordered_json context);
  ResultFile(const ResultFile&) = delete;
  ResultFile& operator=(const ResultFile&) = delete;
  ~ResultFile();

  /// Appends rows and entries of `benchmarks`, a line each; the file is on disk and valid when this
  /// returns. Throws std::runtime_error.
  void add(const std::vector<nlohmann::ordered_json>& rows,
           const std::vector<nlohmann::ordered_json>& entries);

  /// Marks the run complete; where `successful`, it takes the place of an older file.
  /// Returns where the rows are.
  std::filesystem::path finish(bool successful);

 private:
  void write() const;

  std::filesystem::path path_;     ///< as asked for
  std::filesystem::path current_;  ///< where the rows are now
  nlohmann::ordered_json context_;
  std::string rows_, entries_;  ///< their lines
};

}  // namespace crossover::bench
