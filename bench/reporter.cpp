// SPDX-License-Identifier: Apache-2.0
#include "reporter.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <sstream>

#include "say.h"

namespace crossover::bench {
namespace {

using Json = nlohmann::ordered_json;
using Run = benchmark::BenchmarkReporter::Run;

// Google Benchmark 1.8 renamed Run::error_occurred and error_message. These read either.

template <class AnyRun>
bool has_error(const AnyRun& run) {
  if constexpr (requires { run.error_occurred; }) {
    return run.error_occurred;
  } else {
    return static_cast<bool>(run.skipped);
  }
}

template <class AnyRun>
std::string error_of(const AnyRun& run) {
  if constexpr (requires { run.error_message; }) {
    return run.error_message;
  } else {
    return run.skip_message;
  }
}

const char* name_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::measured:
      return "measured";
    case Outcome::failed:
      return "failed";
    case Outcome::skipped:
      return "skipped";
  }
  return "";
}

/// JSON has no NaN and no infinity: such a number is left out.
void put(Json& object, const std::string& key, double value) {
  if (std::isfinite(value)) {
    object[key] = value;
  }
}

double seconds_of(const Run& run) {
  return run.GetAdjustedRealTime() / benchmark::GetTimeUnitMultiplier(run.time_unit);
}

Json verification_json(const RowVerification& verification) {
  Json json = {{"reference", verification.reference}};
  if (!verification.unit.empty()) {
    json[verification.unit] = verification.compared;
    json[verification.unit + "_of"] = verification.of;
  }
  json["tolerance"] = verification.tolerance;
  json["relative_error"] = verification.error;
  if (verification.parameter_tolerance && verification.parameter_error) {
    json["parameter_tolerance"] = *verification.parameter_tolerance;
    json["parameter_error"] = *verification.parameter_error;
  }
  if (verification.undetermined > 0) {
    json["undetermined_updates"] = verification.undetermined;
  }
  return json;
}

Json minimum_work_json(const MinimumWork& least) {
  return {{"flops", least.flops},
          {"memory_bytes", least.memory_bytes},
          {"bytes_to_device", least.bytes_to_device},
          {"bytes_from_device", least.bytes_from_device},
          {"launches", least.launches},
          {"graph", least.graph}};
}

Json row_json(const Run& run, const Row& row) {
  Json json = {{"name", run.benchmark_name()},
               {"family_index", run.family_index},
               {"per_family_instance_index", run.per_family_instance_index},
               {"run_name", run.run_name.str()}};
  const bool aggregate = run.run_type == Run::RT_Aggregate;
  json["run_type"] = aggregate ? "aggregate" : "iteration";
  json["repetitions"] = run.repetitions;
  if (!aggregate) {
    json["repetition_index"] = run.repetition_index;
  }
  json["threads"] = run.threads;
  if (aggregate) {
    json["aggregate_name"] = run.aggregate_name;
    json["aggregate_unit"] = run.aggregate_unit == benchmark::kTime ? "time" : "percentage";
  }
  json["configuration"] = Json::object();
  for (const auto& [key, value] : row.configuration) {
    json["configuration"][key] = value;
  }
  if (has_error(run)) {
    json["error_occurred"] = true;
    json["error_message"] = error_of(run);
    json["outcome"] =
        name_of(row.result.outcome == Outcome::measured ? Outcome::failed : row.result.outcome);
    return json;
  }
  if (aggregate && run.aggregate_unit == benchmark::kPercentage) {
    put(json, "real_time", run.real_accumulated_time);
    put(json, "cpu_time", run.cpu_accumulated_time);
  } else {
    json["iterations"] = run.iterations;
    put(json, "real_time", run.GetAdjustedRealTime());
    put(json, "cpu_time", run.GetAdjustedCPUTime());
  }
  json["time_unit"] = benchmark::GetTimeUnitString(run.time_unit);
  if (!run.report_label.empty()) {
    json["label"] = run.report_label;
  }
  if (!aggregate) {
    json["quality"] = row.quality;
    if (!row.result.workload.empty()) {
      json["workload"] = row.result.workload;
    }
    if (!row.result.verification.reference.empty()) {
      json["verification"] = verification_json(row.result.verification);
    }
    if (row.result.minimum_work) {
      json["minimum_work"] = minimum_work_json(*row.result.minimum_work);
    }
  }
  for (const auto& [name, counter] : run.counters) {
    put(json, name, counter.value);
  }
  return json;
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

Reporter::Reporter(Rows& rows, const std::vector<std::string>& selected, ResultFile* file,
                   std::unique_ptr<benchmark::BenchmarkReporter> standard)
    : rows_(rows), file_(file), standard_(std::move(standard)), selected_(selected.size()) {
  for (const std::string& name : selected) {
    expected_seconds_ += rows[name].expected_seconds;
  }
}

bool Reporter::ReportContext(const Context& context) {
  return standard_ == nullptr || standard_->ReportContext(context);
}

void Reporter::ReportRuns(const std::vector<Run>& measured) {
  std::vector<Run> runs = measured;
  for (Run& run : runs) {  // how a row is measured is no part of its name
    run.run_name.min_time.clear();
    run.run_name.repetitions.clear();
  }
  const std::string name = runs.front().run_name.str();
  Row& row = rows_[name];
  for (Run& run : runs) {
    if (run.run_type != Run::RT_Iteration || has_error(run)) {
      continue;
    }
    if (row.derive != nullptr) {
      row.derive(run.counters, seconds_of(run));
    }
  }
  // Google Benchmark reports a row twice: its repetitions, then their aggregates.
  const bool is_new = reported_.insert(name).second;
  if (is_new) {
    expected_seconds_done_ += row.expected_seconds;
  }
  bool failed = false;
  std::vector<Json> json;
  for (const Run& run : runs) {
    // A row that fails, fails in every repetition: once is enough to know.
    if (!(failed && has_error(run))) {
      json.push_back(row_json(run, row));
    }
    failed = failed || has_error(run);
  }
  if (file_ != nullptr) {
    file_->add(json);  // at once: half a row must never be on disk
  }
  unmeasured_ += failed ? 1 : 0;
  if (standard_ != nullptr) {
    standard_->ReportRuns(runs);
  } else if (is_new) {
    show(name, runs);
  }
  if (is_new) {
    rows_.release(name);
  }
}

void Reporter::Finalize() {
  if (standard_ != nullptr) {
    standard_->Finalize();
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
    if (has_error(run)) {
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
    line << name_of(rows_[name].result.outcome == Outcome::skipped ? Outcome::skipped
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
