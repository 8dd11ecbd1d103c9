// SPDX-License-Identifier: Apache-2.0
#include "file/result_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

#include "axes/flag.h"
#include "base/say.h"
#include "base/times.h"
#include "file/context.h"
#include "rows/counters.h"
#include "rows/row.h"

namespace crossover::bench {
namespace {

// A signal handler can reach nothing but globals. Both are written before the handler is set.
std::string farewell;        // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)
std::string temporary_name;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

/// The file on disk is whole at any moment, and has all rows that are finished (of others it may
/// lack the repetitions of the last second): there is only a word to say.
void on_signal(int signal) {
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, farewell.data(), farewell.size());
  unlink(temporary_name.c_str());
  _exit(128 + signal);
}

void handle_signals(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

[[noreturn]] void fail(const std::filesystem::path& path, const char* what) {
  throw std::runtime_error(path.string() + " can't be " + what + ": " + std::strerror(errno));
}

int open_temporary() {
  return open(temporary_name.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
}

/// Of the temporary file to that name. `is_new`: errno is EEXIST where there is a file, unless the
/// file system can't tell.
bool is_renamed(const std::filesystem::path& path, bool is_new) {
  if (is_new) {
    if (renameat2(AT_FDCWD, temporary_name.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) ==
        0) {
      return true;
    }
    if (errno != EINVAL && errno != ENOSYS) {
      return false;
    }
  }
  return rename(temporary_name.c_str(), path.c_str()) == 0;
}

/// Writes beside the file and renames, so that a reader, or a crash, never meets half a file. A
/// folder that was removed meanwhile is made again. Returns the new file, open and locked (where
/// the file system has locks). `is_new`: UsageError where another run has put one there.
int replace(const std::filesystem::path& path, const std::string& text, bool is_new) {
  int file = open_temporary();
  if (file < 0 && errno == ENOENT) {
    std::error_code ignored;
    std::filesystem::create_directories(path.parent_path(), ignored);
    file = open_temporary();
  }
  if (file < 0) {
    fail(path, "written");
  }
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t count = write(file, text.data() + done, text.size() - done);
    if (count < 0) {
      close(file);
      unlink(temporary_name.c_str());
      fail(path, "written");
    }
    done += static_cast<std::size_t>(count);
  }
  flock(file, LOCK_EX | LOCK_NB);
  if (fsync(file) != 0 || !is_renamed(path, is_new)) {
    const int why = errno;
    close(file);
    unlink(temporary_name.c_str());
    if (why == EEXIST) {
      refuse_file_of_another_run(path);
    }
    errno = why;
    fail(path, "written");
  }
  return file;
}

using Json = nlohmann::ordered_json;

Json load_average() {
  std::array<double, 3> load{};
  const int known = getloadavg(load.data(), static_cast<int>(load.size()));
  return known == static_cast<int>(load.size()) ? Json(load) : Json::array();
}

/// Milliseconds are enough.
double rounded(double seconds) { return std::round(seconds * 1e3) / 1e3; }

/// Of the process: what it has measured so far, and where its time went.
void update(Json& part, std::size_t rows, const Spent& spent) {
  part["end"] = now_in_utc();
  part["load_average_end"] = load_average();
  part["rows"] = rows;
  part["seconds"] = rounded(spent.all());
  for (const auto& [name, seconds] : parts_of_spent) {
    part[std::string(name) + "_seconds"] = rounded(spent.*seconds);
  }
  if (spent.lent > 0) {
    part["lent_seconds"] = rounded(spent.lent);
  }
}

/// A process that was killed while it wrote left a file behind: FILE.<its number>.tmp.
void remove_leftovers(const std::filesystem::path& current) {
  std::error_code ignored;
  const std::string before = current.filename().string() + ".";
  constexpr std::string_view after = ".tmp";
  const std::filesystem::path folder = current.has_parent_path() ? current.parent_path() : ".";
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(before) && name.ends_with(after) &&
        name.size() > before.size() + after.size()) {
      const std::string process =
          name.substr(before.size(), name.size() - before.size() - after.size());
      if (process.find_first_not_of("0123456789") == std::string::npos &&
          kill(std::atoi(process.c_str()), 0) != 0 && errno == ESRCH) {
        std::filesystem::remove(entry.path(), ignored);
      }
    }
  }
}

/// Two levels down in the file.
std::string indented(const Json& json) {
  std::string text = json.dump(1, ' ', false, Json::error_handler_t::replace);
  for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; ++at) {
    text.insert(at + 1, 1, ' ');
  }
  return text;
}

void append(std::string& lines, const std::string& line) {
  lines += (lines.empty() ? "\n  " : ",\n  ") + line;
}

std::filesystem::path partial_of(std::filesystem::path path) { return path += ".partial"; }

/// Or not there.
bool has_nothing(const std::filesystem::path& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  return error || size == 0;
}

std::string list(const std::string& lines) { return lines.empty() ? "[]" : "[" + lines + "\n ]"; }

}  // namespace

std::filesystem::path resolved(const std::filesystem::path& asked) {
  constexpr int most_links = 40;  // the kernel's limit
  std::filesystem::path path = asked;
  std::error_code ignored;
  for (int links = 0; links < most_links && std::filesystem::is_symlink(path, ignored); ++links) {
    path = path.parent_path() / std::filesystem::read_symlink(path, ignored);
  }
  return path;
}

ResultLocks lock_results(const std::filesystem::path& path, bool goes_on) {
  const std::string asked = "--out=" + path.string();
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored) || !path.has_filename()) {
    throw UsageError(asked + " is a folder; name a file");
  }
  const bool exists = std::filesystem::exists(path, ignored);
  if (exists && !std::filesystem::is_regular_file(path, ignored)) {
    throw UsageError(
        asked + " is not a regular file, so it cannot be rewritten after each row; name another");
  }
  ResultLocks locks{.is_new = !exists, .of = {}};
  locks.of.emplace_back(path);
  locks.of.emplace_back(partial_of(path));
  if (!goes_on && !has_nothing(path) && !is_result_file(path)) {
    throw UsageError(asked +
                     " is no result file, and would be replaced; name another, or remove it");
  }
  return locks;
}

ResultFile::ResultFile(std::filesystem::path path, ResultLocks locks, Json context,
                       const Spent& spent, std::optional<EarlierRun> earlier)
    : path_(std::move(path)),
      locks_(std::move(locks)),
      current_(path_),
      context_(std::move(context)),
      spent_(spent) {
  if (!has_nothing(path_)) {
    if (locks_.is_new) {  // it came between
      refuse_file_of_another_run(path_);
    }
    current_ = partial_of(path_);
    if (!earlier && has_interrupted_rows(current_)) {
      throw UsageError(current_.string() +
                       " has the rows of an interrupted run; --resume goes on "
                       "with them, or remove it");
    }
  }
  const Json part = {{"start", now_in_utc()}, {"load_average", load_average()}};
  if (earlier) {
    current_ = earlier->path;
    context_ = std::move(earlier->context);
    context_["crossover"].erase("budget");
    rows_ = std::move(earlier->rows);
    earlier_rows_ = rows_.size();
    remove_leftovers(current_);
  }
  locks_.is_new = locks_.is_new && current_ == path_;
  context_["crossover"]["parts"].push_back(part);
  if (path_.has_parent_path()) {
    std::error_code ignored;
    std::filesystem::create_directories(path_.parent_path(), ignored);
  }
  temporary_name = current_.string() + "." + std::to_string(getpid()) + ".tmp";
  std::signal(SIGXFSZ, SIG_IGN);  // a file that grows too large is a failed write, with its message
  try {
    write();
  } catch (const UsageError&) {
    throw;
  } catch (const std::runtime_error& error) {
    throw UsageError(std::string("--out: ") + error.what());
  }
  farewell = "\n" + printable(speaker()) + ": interrupted; the finished rows are in " +
             current_.string() + "; --resume goes on with them\n";
  handle_signals(on_signal);
}

ResultFile::~ResultFile() {
  handle_signals(SIG_DFL);
  close(locked_);
}

void ResultFile::put(WrittenRow row, bool now) {
  const std::string name = row.name;
  const auto known = std::ranges::find(rows_, name, &WrittenRow::name);
  if (known == rows_.end()) {
    rows_.push_back(std::move(row));
  } else {
    *known = std::move(row);
  }
  // A pass may have hundreds of rows of some milliseconds: writing takes a twentieth of the time.
  constexpr double rarely = 20;
  constexpr double often = 1;  // second
  if (!now && seconds_since(written_) < std::min(often, rarely * seconds_of_writing_)) {
    return;
  }
  try {
    write();
  } catch (const std::runtime_error& error) {
    std::error_code ignored;
    throw std::runtime_error(std::string(error.what()) + (std::filesystem::exists(current_, ignored)
                                                              ? "; it keeps the rows before " + name
                                                              : "; it is gone, with its rows"));
  }
}

void ResultFile::note(const std::string& field, Json value) {
  context_["crossover"][field] = std::move(value);
}

std::filesystem::path ResultFile::finish(bool complete, bool successful) {
  if (Json load = load_average(); !load.empty()) {
    note("load_average_end", std::move(load));
  }
  note("complete", complete);
  write();
  if (successful && current_ != path_) {
    std::filesystem::rename(current_, path_);
    current_ = path_;
  }
  return current_;
}

void ResultFile::write() {
  const Instant begun = std::chrono::steady_clock::now();
  update(context_["crossover"]["parts"].back(), rows_.size() - earlier_rows_, spent_);
  std::string rows;
  std::string entries;
  for (const WrittenRow& row : rows_) {
    append(rows, row.facts);
    for (const std::string& entry : row.entries) {
      append(entries, entry);
    }
  }
  const int before = std::exchange(
      locked_, replace(current_,
                       "{\n \"context\": " + indented(context_) + ",\n \"rows\": " + list(rows) +
                           ",\n \"benchmarks\": " + list(entries) + "\n}\n",
                       std::exchange(locks_.is_new, false)));
  if (before >= 0) {
    close(before);
  }
  written_ = std::chrono::steady_clock::now();
  seconds_of_writing_ = seconds_since(begun);
}

// ---- Rows

namespace {

using Json = nlohmann::ordered_json;

/// With its numbers as number_json() has them; those that JSON does not have are left out.
Json rounded(const Json& json) {
  if (!json.is_object()) {
    return json.is_number_float() ? number_json(json.get<double>()) : json;
  }
  Json all = Json::object();
  for (const auto& [key, value] : json.items()) {
    if (Json one = rounded(value); !one.is_null()) {
      all[key] = std::move(one);
    }
  }
  return all;
}

/// What is the same in all repetitions stands in the first of them alone. So one of each repetition
/// that the first has and another lacks, such as a quantile of too few passes, is left out: it
/// would be read as the same in both.
void put_counters(const std::vector<Repetition>& repetitions, std::vector<Json>& to) {
  std::set<std::string> names;
  for (const Repetition& repetition : repetitions) {
    for (const auto& [name, value] : repetition.counters) {
      names.insert(name);
    }
  }
  for (const std::string& name : names) {
    const auto value = [&](const Repetition& repetition) {
      const auto found = repetition.counters.find(name);
      return found == repetition.counters.end() ? std::nan("") : found->second;
    };
    const double first = value(repetitions.front());
    if (kind_of_counter(name) == CounterKind::repetition && !std::isnan(first) &&
        std::ranges::any_of(repetitions,
                            [&](const Repetition& one) { return std::isnan(value(one)); })) {
      continue;
    }
    const bool same = std::ranges::all_of(
        repetitions, [&](const Repetition& one) { return value(one) == first; });
    for (std::size_t i = 0; i < (same ? 1 : repetitions.size()); ++i) {
      if (Json number = number_json(value(repetitions[i])); !number.is_null()) {
        to[i][name] = std::move(number);
      }
    }
  }
}

/// With what is the same in all repetitions, which stands in the first.
Repetition completed(Repetition one, const std::vector<Repetition>& before) {
  if (before.empty()) {
    return one;
  }
  const Repetition& first = before.front();
  one.iterations = one.iterations == 0 ? first.iterations : one.iterations;
  for (const auto& [key, value] : first.counters) {
    if (kind_of_counter(key) == CounterKind::repetition) {
      one.counters.emplace(key, value);
    }
  }
  return one;
}

}  // namespace

Record record_in(const WrittenRow& written, const std::vector<std::string>& planned_warnings) {
  try {
    Record record;
    record.facts = Json::parse(written.facts);
    static_cast<void>(record.chosen());  // it can be read
    if (record.facts.contains("outcome")) {
      return {};
    }
    for (const std::string& warning : record.facts.value("warnings", std::vector<std::string>())) {
      if (!contains(planned_warnings, warning)) {
        record.doubts.push_back(warning);
      }
    }
    for (const char* of_file : {"name", "configuration", "network", "repetitions", "warnings"}) {
      record.facts.erase(of_file);
    }
    for (const std::string& line : written.entries) {
      if (const Json entry = Json::parse(line); entry.at("run_type") == "iteration") {
        Repetition one = repetition_in(entry);
        one.instance = entry.value("instance", 0);
        record.repetitions.push_back(completed(std::move(one), record.repetitions));
        record.instances = std::max(record.instances, record.repetitions.back().instance + 1);
      }
    }
    for (const std::string& doubt : doubts_about_times(record.repetitions)) {  // follow again
      std::erase(record.doubts, doubt);
    }
    return record;
  } catch (const std::exception&) {  // of JSON, or of a configuration
    throw UsageError("--resume: the file has " + written.name +
                     " that can't be read; without --resume the rows are measured anew");
  }
}

Json number_json(double value) {
  constexpr double exact = 9007199254740992;  // below it a double tells whole numbers apart
  if (!std::isfinite(value)) {
    return nullptr;
  }
  if (value != std::trunc(value)) {
    std::ostringstream digits;
    digits.precision(6);
    digits << value;
    value = std::strtod(digits.str().c_str(), nullptr);
  }
  if (value == std::trunc(value) && std::abs(value) < exact) {
    return static_cast<std::int64_t>(value);
  }
  return value;
}

WrittenRow written_row(const std::string& name, const Row& row) {
  const Record& record = row.record;
  Json facts = {{"name", name}, {"configuration", configuration_json(row.spec)}};
  if (!row.network.empty()) {
    facts["network"] = row.network;
  }
  if (record.outcome != Outcome::measured) {
    facts["outcome"] = to_string(record.outcome);
    facts["error_message"] = record.reason;
    if (!record.not_verified.is_null()) {
      facts["not_verified"] = rounded(record.not_verified);
    }
  }
  const std::vector<Repetition>& repetitions = record.repetitions;
  if (repetitions.empty()) {
    return {.name = name, .facts = line_of(facts), .entries = {}};
  }
  facts["repetitions"] = repetitions.size();
  if (const std::vector<std::string> warnings = doubts_about(row); !warnings.empty()) {
    facts["warnings"] = warnings;
  }
  facts.update(rounded(record.facts));
  const Repetition& first = repetitions.front();
  const bool same_iterations = std::ranges::all_of(
      repetitions, [&](const Repetition& one) { return one.iterations == first.iterations; });
  std::vector<Json> entries;
  for (const Repetition& repetition : repetitions) {
    Json& entry = entries.emplace_back();
    entry = {{"name", name},
             {"run_type", "iteration"},
             {"real_time", number_json(milliseconds_in(repetition.seconds))},
             {"cpu_time", number_json(milliseconds_in(repetition.cpu_seconds))},
             {"time_unit", "ms"}};
    if (&repetition == &first || !same_iterations) {
      entry["iterations"] = repetition.iterations;
    }
    if (repetition.instance > 0) {
      entry["instance"] = repetition.instance;
    }
  }
  put_counters(repetitions, entries);
  WrittenRow row_as_written{.name = name, .facts = line_of(facts), .entries = {}};
  std::ranges::transform(entries, std::back_inserter(row_as_written.entries), line_of);
  return row_as_written;
}

}  // namespace crossover::bench
