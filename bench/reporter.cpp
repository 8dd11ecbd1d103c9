// SPDX-License-Identifier: Apache-2.0
#include "reporter.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <sstream>

#include "row_json.h"
#include "say.h"

namespace crossover::bench {
namespace {

double seconds_of(const Run& run) {
  return run.GetAdjustedRealTime() / benchmark::GetTimeUnitMultiplier(run.time_unit);
}

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

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace

Reporter::Reporter(Rows& rows, const std::vector<std::string>& selected, Output output)
    : rows_(rows), output_(std::move(output)), selected_(selected.size()) {
  for (const std::string& name : selected) {
    expected_seconds_ += rows[name].expected_seconds;
  }
}

bool Reporter::ReportContext(const Context& context) {
  return output_.standard == nullptr || output_.standard->ReportContext(context);
}

void Reporter::ReportRuns(const std::vector<Run>& measured) {
  std::vector<Run> runs = measured;
  for (Run& run : runs) {  // how a row is measured is no part of its name
    run.run_name.min_time.clear();
    run.run_name.repetitions.clear();
  }
  const std::string name = runs.front().run_name.str();
  Row& row = rows_[name];
  // Google Benchmark reports a row twice: its repetitions, then their aggregates.
  const bool is_new = reported_.insert(name).second;
  if (output_.file != nullptr) {  // at once: half a row must never be on disk
    if (is_new) {
      const RowJson json = row_json(runs, row);
      output_.file->add({json.facts}, json.repetitions);
    } else if (output_.aggregates) {
      output_.file->add({}, aggregates_json(runs));
    }
  }
  bool failed = false;
  for (Run& run : runs) {
    if (!error_of(run).empty()) {
      failed = true;
    } else if (run.run_type == Run::RT_Iteration && row.derive != nullptr) {
      row.derive(run.counters, seconds_of(run));
    }
  }
  if (is_new) {
    expected_seconds_done_ += row.expected_seconds;
  }
  unmeasured_ += failed ? 1 : 0;
  if (output_.standard != nullptr) {
    output_.standard->ReportRuns(runs);
  } else if (is_new) {
    show(name, runs);
  }
  if (is_new) {
    rows_.release(name);
  }
}

void Reporter::Finalize() {
  if (output_.standard != nullptr) {
    output_.standard->Finalize();
  }
}

void Reporter::show(const std::string& name, const std::vector<Run>& runs) {
  std::vector<double> seconds;
  std::vector<double> flops_per_second;
  std::string error;
  const auto counter = [](const Run& run, const char* of) {
    const auto found = run.counters.find(of);
    return found != run.counters.end() ? found->second.value : 0;
  };
  for (const Run& run : runs) {
    if (!error_of(run).empty()) {
      error = error_of(run);
    } else if (run.run_type == Run::RT_Iteration) {
      // An iteration may repeat what its row is about, which `seconds` is the time of.
      const double of_one = counter(run, "seconds");
      seconds.push_back(of_one > 0 ? of_one : seconds_of(run));
      flops_per_second.push_back(counter(run, "flops_per_second"));
    }
  }
  std::ostringstream line;
  line << "[" << std::setw(static_cast<int>(std::to_string(selected_).size())) << reported_.size()
       << "/" << selected_ << "] " << name << "  ";
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
  }
  std::cout << line.str() << time_left() << std::endl;
}

std::string Reporter::time_left() const {
  if (reported_.size() >= selected_ || expected_seconds_done_ <= 0) {
    return "";
  }
  const double spent =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  const double left = spent / expected_seconds_done_ * (expected_seconds_ - expected_seconds_done_);
  constexpr double minute = 60;
  std::ostringstream text;
  text << "  [" << std::lround(left < minute ? left : left / minute)
       << (left < minute ? " s" : " min") << " left]";
  return text.str();
}

}  // namespace crossover::bench
