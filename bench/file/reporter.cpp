// SPDX-License-Identifier: Apache-2.0
#include "file/reporter.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <iterator>
#include <sstream>

#include "axes/axes.h"
#include "base/say.h"
#include "base/times.h"
#include "file/result_file.h"

namespace crossover::bench {
namespace {

constexpr double long_enough = 20;         ///< seconds, for a log to say what goes on
constexpr double rounds_to_next = 0.9995;  ///< in three digits

/// Three significant digits, and of a number from 1000 on all before the point.
std::string digits(double value) {
  std::ostringstream text;
  if (value >= rounds_to_next * 1e3) {
    text << std::fixed << std::setprecision(0);
  } else {
    text << std::setprecision(3);
  }
  text << value;
  return text.str();
}

/// With a unit: 31.2 ms.
std::string duration(double seconds) {
  const std::initializer_list<std::pair<double, const char*>> units{
      {1, " s"}, {1e-3, " ms"}, {1e-6, " us"}, {1e-9, " ns"}};
  for (const auto& [size, unit] : units) {
    if (seconds >= rounds_to_next * size || size == 1e-9) {
      return digits(seconds / size) + unit;
    }
  }
  return {};
}

/// A time that nobody knows exactly: "85 s", "2.5 min", "12 min".
std::string about(double seconds) {
  constexpr double minute = 60;
  constexpr double in_seconds = 100;
  constexpr double in_halves = 9.75 * minute;
  std::ostringstream text;
  if (seconds < in_seconds) {
    text << std::lround(seconds) << " s";
  } else if (seconds < in_halves) {
    text << static_cast<double>(std::lround(2 * seconds / minute)) / 2 << " min";
  } else {
    text << std::lround(seconds / minute) << " min";
  }
  return text.str();
}

/// "[2.5 min left]"; empty where that is next to nothing.
std::string time_left(double seconds) {
  constexpr double least = 0.5;
  return seconds < least ? "" : "[" + about(seconds) + " left]";
}

/// "[######..............]": what share of `left` and `taken` is taken.
std::string bar(double taken, double left) {
  constexpr std::size_t width = 20;
  const double share = taken / std::max(taken + left, 1e-9);
  const auto full = static_cast<std::size_t>(share * static_cast<double>(width));
  return "[" + std::string(full, '#') + std::string(width - full, '.') + "]";
}

/// Of whoever runs it: a line there can be written over.
bool has_terminal() {
  const char* set = std::getenv("TERM");
  const std::string kind = set == nullptr ? "" : set;
  return !kind.empty() && kind != "dumb" && isatty(STDERR_FILENO) == 1 &&
         isatty(STDOUT_FILENO) == 1;
}

/// Of the terminal that is written to; 0 where it is none.
std::size_t terminal_columns() {
  winsize size{};
  const bool is_terminal = isatty(STDOUT_FILENO) == 1;
  return is_terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

/// `first`, the parts of `name` and `rest` behind each other, with new lines where the terminal's
/// end: behind `first`, and before a part.
std::string folded(const std::string& first, const std::string& name,
                   const std::vector<std::string>& rest, std::size_t columns) {
  std::string text = first;
  std::size_t used = first.size();
  const auto add = [&](const std::string& part, const std::string& between) {
    const bool fits = columns == 0 || used + between.size() + part.size() <= columns;
    const std::string before = fits ? between : "\n" + std::string(first.size(), ' ');
    text += before + part;
    used = (fits ? used + between.size() : first.size()) + part.size();
  };
  for (std::size_t begin = 0; begin < name.size();) {
    const std::size_t end = std::min(name.find('/', begin + 1), name.size());
    add(name.substr(begin, end - begin), "");
    begin = end;
  }
  for (const std::string& part : rest) {
    add(part, "  ");
  }
  return text;
}

/// Of what a row is about, which an iteration may repeat.
std::vector<double> seconds_of_one(const Record& record) {
  std::vector<double> seconds = record.seconds();
  for (double& one : seconds) {
    one /= record.facts.value("count", 1.0);
  }
  return seconds;
}

/// Floating-point operations per second in a time of one iteration; 0 where none are counted.
double flops_per_second(const Row& row, double seconds_of_iteration) {
  const double flops = row.record.facts.value("flops", 0.0);
  const double times =
      family_of(row.spec).flops_of_iteration ? 1 : row.record.facts.value("count", 1.0);
  return times * flops / seconds_of_iteration;
}

}  // namespace

void Reporter::begin_pass(const std::string& words, bool is_first) {
  of_pass_ = 0;
  pass_ = words;
  is_first_pass_ = is_first;
  if (is_first_pass_ || has_terminal()) {
    return;
  }
  if (const double left = seconds_left_(); left > long_enough) {
    say(pass_ + "  " + time_left(left));
  }
}

void Reporter::add(const std::string& name) {
  const Row& row = rows_[name];
  const bool failed = row.record.outcome != Outcome::measured;
  const bool is_complete = failed || std::ssize(row.record.repetitions) >= row.turns.wanted;
  if (!row.reported_by_caller) {
    reported_.insert(name);
  }
  ++of_pass_;
  if (output_.file != nullptr) {  // at once: half a row must never be on disk
    output_.file->put(written_row(name, row), is_complete);
  }
  if (failed) {
    unmeasured_.insert(name);
  } else {  // it may have had a second try
    unmeasured_.erase(name);
  }
  if (is_complete && (failed || !shown_.contains(name))) {
    show(name);
  } else if (!is_complete && is_first_pass_) {
    show_so_far(name);
  }
  show_progress();
}

void Reporter::finish() {
  for (const std::string& name : reported_) {
    if (!shown_.contains(name)) {
      show(name);
    }
  }
  clear_progress();
}

/// In the terminal's last line, until the next line of text.
void Reporter::show_progress() const {
  if (has_terminal() && !pass_.empty()) {
    const double left = seconds_left_();  // which looks at all rows
    std::cerr << "\r\033[K" << bar(seconds_since(start_), left) << " " << pass_ << ", " << of_pass_
              << " rows  " << time_left(left) << std::flush;
  }
}

void Reporter::clear_progress() const {
  if (has_terminal() && !pass_.empty()) {
    std::cerr << "\r\033[K" << std::flush;
  }
}

void Reporter::show_so_far(const std::string& name) const {
  const Row& row = rows_[name];
  if (pass_.empty() || row.reported_by_caller || has_terminal()) {
    return;
  }
  if (const double left = seconds_left_(); left > long_enough) {
    std::cout << "[" << pass_ << "] " << name << "  "
              << duration(median(seconds_of_one(row.record))) << " so far  " << time_left(left)
              << std::endl;
  }
}

void Reporter::show(const std::string& name) {
  const Row& row = rows_[name];
  const Record& record = row.record;
  const bool failed = record.outcome != Outcome::measured;
  if (!row.reported_by_caller) {
    shown_.insert(name);
  }
  const bool is_told = record.reason.starts_with(after_failed_gpu);  // once, of all of them
  if ((row.reported_by_caller && !failed) || is_told) {
    return;
  }
  const double count = record.facts.value("count", 1.0);
  const std::vector<double> seconds = seconds_of_one(record);
  std::ostringstream number;
  number << "[" << std::setw(static_cast<int>(std::to_string(selected_).size()))
         << output_.kept + shown_.size() << (output_.may_leave ? " of up to " : "/") << selected_
         << "] ";
  std::vector<std::string> parts;
  if (record.outcome != Outcome::measured) {
    parts.push_back(to_string(record.outcome) + ": " + record.reason);
    say(name + ": " + record.reason);
  } else if (!seconds.empty()) {
    const auto [least, most] = std::ranges::minmax_element(seconds);
    parts.push_back(duration(median(seconds)));
    parts.push_back("(" + duration(*least) + " to " + duration(*most) + ")");
    if (const double rate = flops_per_second(row, count * median(seconds)); rate > 0) {
      parts.push_back(digits(rate / 1e9) + " GFLOP/s");
    }
    if (const std::optional<RowSpec> chosen = record.chosen()) {
      std::string line = text_of(*chosen, &RowSpec::execution);
      for (const auto& [key, value] : configuration_of(*chosen)) {
        if (key == axis_of(&RowSpec::threads).key) {
          line += " on " + words_of_threads(*chosen->threads);
        } else if (key != axis_of(&RowSpec::execution).key) {
          line += ", " + key + ":" + value;
        }
      }
      parts.push_back(line);
    }
  }
  std::ranges::transform(doubts_about(row), std::back_inserter(parts),
                         [](const std::string& doubt) { return "! " + doubt; });
  if (const std::string left = time_left(seconds_left_()); !left.empty()) {
    parts.push_back(left);
  }
  clear_progress();
  std::ranges::transform(parts, parts.begin(),
                         printable);  // another program's words are among them
  std::cout << folded(number.str(), name, parts, terminal_columns()) << std::endl;
}

}  // namespace crossover::bench
