// SPDX-License-Identifier: Apache-2.0
#include "file/reporter.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <sstream>

#include "file/aggregates.h"
#include "run/say.h"

namespace crossover::bench {
namespace {

/// Three significant digits and a unit: 31.2 ms.
std::string duration(double seconds) {
  const std::initializer_list<std::pair<double, const char*>> units{
      {1, " s"}, {1e-3, " ms"}, {1e-6, " us"}, {1e-9, " ns"}};
  for (const auto& [size, unit] : units) {
    if (seconds >= size || size == 1e-9) {
      std::ostringstream text;
      text.precision(3);
      text << seconds / size << unit;
      return text.str();
    }
  }
  return {};
}

/// Google Benchmark's columns are as wide as the longest name, with "_median" behind it.
std::size_t widest(const std::vector<std::string>& names) {
  std::size_t width = 0;
  for (const std::string& name : names) {
    width = std::max(width, name.size());
  }
  return width + std::string("_median").size();
}

}  // namespace

Reporter::Reporter(Rows& rows, const std::vector<std::string>& selected, Output output)
    : rows_(rows), output_(std::move(output)), selected_(selected.size() + output_.kept) {
  for (const std::string& name : selected) {
    expected_seconds_ += rows[name].expected.all;
  }
  if (output_.standard != nullptr) {
    benchmark::BenchmarkReporter::Context context;
    context.name_field_width = widest(selected);
    output_.standard->ReportContext(context);
  }
}

void Reporter::add(const std::string& name, std::vector<Repetition> runs) {
  Row& row = rows_[name];
  const bool is_new = !row.is_quiet && reported_.insert(name).second;
  if (output_.file != nullptr) {  // at once: half a row must never be on disk
    RowJson json = row_json(runs, row);
    if (output_.aggregates) {
      const auto together = aggregates_json(aggregates(runs));
      json.repetitions.insert(json.repetitions.end(), together.begin(), together.end());
    }
    output_.file->put(name, json.facts, json.repetitions);
  }
  bool failed = false;
  for (Repetition& run : runs) {
    if (!error_of(run).empty()) {
      failed = true;
    } else if (row.derive != nullptr) {
      row.derive(run.counters, seconds_of(run));
    }
  }
  if (failed) {
    unmeasured_.insert(name);
  }
  if (is_new) {
    expected_seconds_done_ += row.expected.all;
  }
  if (output_.standard == nullptr) {
    if (!row.is_quiet || failed) {
      show(name, runs);
    }
    return;
  }
  const std::vector<Repetition> together = aggregates(runs);
  if (!output_.aggregates_only || together.empty()) {
    output_.standard->ReportRuns(runs);
  }
  if (!together.empty()) {
    output_.standard->ReportRuns(together);
  }
}

void Reporter::finish() const {
  if (output_.standard != nullptr) {
    output_.standard->Finalize();
  }
}

void Reporter::show(const std::string& name, const std::vector<Repetition>& runs) {
  std::vector<double> seconds;
  std::vector<double> flops_per_second;
  std::string error;
  const auto counter = [](const Repetition& run, const char* of) {
    const auto found = run.counters.find(of);
    return found != run.counters.end() ? found->second.value : 0;
  };
  for (const Repetition& run : runs) {
    if (!error_of(run).empty()) {
      error = error_of(run);
    } else {
      // An iteration may repeat what its row is about, which `seconds` is the time of.
      const double of_one = counter(run, "seconds");
      seconds.push_back(of_one > 0 ? of_one : seconds_of(run));
      flops_per_second.push_back(counter(run, "flops_per_second"));
    }
  }
  std::ostringstream line;
  line << "[" << std::setw(static_cast<int>(std::to_string(selected_).size()))
       << output_.kept + reported_.size() << "/" << selected_ << "] " << name << "  ";
  if (!error.empty()) {
    line << to_string(rows_[name].result.outcome == Outcome::skipped ? Outcome::skipped
                                                                     : Outcome::failed)
         << ": " << error;
    say(name + ": " + error);
  } else if (!seconds.empty()) {
    const auto [least, most] = std::minmax_element(seconds.begin(), seconds.end());
    line.precision(3);
    const double middle = median(seconds);
    line << duration(middle) << "  (" << duration(*least) << " to " << duration(*most) << ")";
    if (const double rate = median(flops_per_second); rate > 0) {
      line << "  " << rate / 1e9 << " GFLOP/s";
    }
    if (const Configuration& chosen = rows_[name].result.chosen; !chosen.empty()) {
      const std::string& threads = value_of(chosen, "cpu_threads");
      line << "  " << value_of(chosen, "execution") << " on " << threads
           << (threads == "1" ? " thread" : " threads");
    }
  }
  std::cout << line.str() << time_left() << std::endl;
}

std::string Reporter::time_left() const {
  double left = 0;
  if (output_.end) {
    left = std::max(0.0, -seconds_since(*output_.end));
  } else if (output_.kept + reported_.size() >= selected_ || expected_seconds_done_ <= 0) {
    return "";
  } else {
    left = seconds_since(start_) / expected_seconds_done_ *
           (expected_seconds_ - expected_seconds_done_);
  }
  constexpr double minute = 60;
  std::ostringstream text;
  text << "  [" << std::lround(left < minute ? left : left / minute)
       << (left < minute ? " s" : " min") << " left]";
  return text.str();
}

}  // namespace crossover::bench
