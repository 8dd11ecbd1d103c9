// SPDX-License-Identifier: Apache-2.0
// An interrupted run, read from its file, so that another one goes on with it.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace crossover::bench {

/// As it stands in the file: a line of `rows`, and lines of `benchmarks`.
struct WrittenRow {
  std::string name;
  std::string facts;
  std::vector<std::string> entries;
  bool is_skipped = false;  ///< an earlier run's that has no times
};

struct EarlierRun {
  std::filesystem::path path;
  nlohmann::ordered_json context;
  std::vector<WrittenRow> rows;  ///< the finished ones, which stay as they are
  bool is_done = false;          ///< no row is left to measure
};

/// One line. Text that is no UTF-8 has its faulty bytes replaced.
std::string line_of(const nlohmann::ordered_json& json);

/// Where an unfinished run for --out=`asked` has its rows: UsageError where there is none.
std::filesystem::path unfinished(const std::filesystem::path& asked);

/// Reads the text of a result file. Rows that failed are left out, to be tried again. UsageError
/// where it is none.
EarlierRun parse_earlier(const std::string& text);

/// The same of the file in which an unfinished run for --out=`asked` has its rows. `now`: the
/// context of this run. UsageError where something differs that would change results.
EarlierRun read_earlier(const std::filesystem::path& asked, const nlohmann::ordered_json& now);

/// As if these rows had not been measured.
void leave_out(EarlierRun& earlier, const std::set<std::string>& names);

// ---- What it says to a refinement.

struct EarlierSizes {
  std::map<std::string, std::vector<double>> seconds;  ///< of repetitions, by row
  std::vector<std::string> models;                     ///< of ladders, some in between
  nlohmann::ordered_json refinements = nlohmann::ordered_json::array();

  /// A refinement came to its end.
  [[nodiscard]] bool is_refined() const;
};

/// Of the rows that `counts` says of by name; others need not be read. UsageError where something
/// there is not as we write it.
EarlierSizes earlier_sizes(const EarlierRun& run,
                           const std::function<bool(const std::string& row)>& counts);

/// Whether that file has rows of an interrupted run.
bool has_interrupted_rows(const std::filesystem::path& path);

/// Whether it is one of ours, be it damaged by hand, or another program's of Google Benchmark.
bool is_result_file(const std::filesystem::path& path);

}  // namespace crossover::bench
