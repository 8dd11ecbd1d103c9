// SPDX-License-Identifier: Apache-2.0
#include "file/row_json.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <set>
#include <sstream>
#include <utility>

namespace crossover::bench {
namespace {

using Json = nlohmann::ordered_json;

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
std::string message_of(const AnyRun& run) {
  if constexpr (requires { run.error_message; }) {
    return run.error_message;
  } else {
    return run.skip_message;
  }
}

/// Whole numbers as they are. Of others six digits: no clock is steadier than a millionth.
Json number(double value) {
  constexpr double exact = 9007199254740992;  // below it a double tells whole numbers apart
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

/// JSON has no NaN and no infinity: such a number is left out.
void put(Json& object, const std::string& key, double value) {
  if (std::isfinite(value)) {
    object[key] = number(value);
  }
}

Json verification_json(const RowVerification& verification) {
  Json json = {{"reference", verification.reference}};
  if (!verification.unit.empty()) {
    json[verification.unit] = verification.compared;
    json[verification.unit + "_of"] = verification.of;
  }
  if (verification.batch) {
    json["batch"] = *verification.batch;
  }
  json["tolerance"] = number(verification.tolerance);
  json["relative_error"] = number(verification.error);
  if (verification.parameter_tolerance && verification.parameter_error) {
    json["parameter_tolerance"] = number(*verification.parameter_tolerance);
    json["parameter_error"] = number(*verification.parameter_error);
  }
  if (verification.operation_tolerance && verification.operation_error) {
    json["operation_tolerance"] = number(*verification.operation_tolerance);
    json["operation_error"] = number(*verification.operation_error);
  }
  if (verification.undetermined > 0) {
    json["undetermined_updates"] = verification.undetermined;
  }
  if (verification.tf32_factors) {
    json["tf32_factors"] = to_string(*verification.tf32_factors);
  }
  if (verification.relu_passes_zero) {
    json["relu_passes_zero"] = true;
  }
  return json;
}

/// What is not there is none.
Json minimum_work_json(const MinimumWork& least) {
  Json json = Json::object();
  const std::initializer_list<std::pair<const char*, double>> amounts{
      {"flops", least.flops},
      {"memory_bytes", least.memory_bytes},
      {"bytes_to_device", least.bytes_to_device},
      {"bytes_from_device", least.bytes_from_device},
      {"launches", least.launches}};
  for (const auto& [name, amount] : amounts) {
    if (amount != 0) {
      put(json, name, amount);
    }
  }
  if (least.graph) {
    json["graph"] = true;
  }
  return json;
}

Json configuration_json(const Configuration& configuration) {
  Json json = Json::object();
  for (const auto& [key, value] : configuration) {
    json[key] = value;
  }
  return json;
}

/// Whether it is a time, a rate or a clock.
bool is_measured(const std::string& counter) {
  return counter.find("second") != std::string::npos || counter.find("mhz") != std::string::npos;
}

/// Where a counter stands: in the row what is the same in all repetitions; in the first of them
/// what was measured once.
void put_counters(const std::vector<const Repetition*>& runs, RowJson& json) {
  std::set<std::string> names;
  for (const Repetition* run : runs) {
    for (const auto& [name, counter] : run->counters) {
      names.insert(name);
    }
  }
  const auto value = [](const Repetition* run, const std::string& name) {
    const auto found = run->counters.find(name);
    return found != run->counters.end() ? found->second.value : std::nan("");
  };
  for (const std::string& name : names) {
    const double first = value(runs.front(), name);
    const bool same = std::all_of(runs.begin(), runs.end(),
                                  [&](const Repetition* run) { return value(run, name) == first; });
    if (same && !is_measured(name)) {
      put(json.facts, name, first);
      continue;
    }
    for (std::size_t i = 0; i < (same ? 1 : runs.size()); ++i) {
      put(json.repetitions[i], name, value(runs[i], name));
    }
  }
}

}  // namespace

std::string error_of(const Repetition& run) {
  if (!has_error(run)) {
    return "";
  }
  const std::string message = message_of(run);
  return message.empty() ? "no reason was given" : message;
}

double seconds_of(const Repetition& run) {
  return run.GetAdjustedRealTime() / benchmark::GetTimeUnitMultiplier(run.time_unit);
}

RowJson row_json(const std::vector<Repetition>& runs, const Row& row) {
  std::vector<const Repetition*> measured;
  std::string error;
  for (const Repetition& run : runs) {
    if (error_of(run).empty()) {
      measured.push_back(&run);
    } else if (error.empty()) {  // a row that fails, fails in every repetition
      error = error_of(run);
    }
  }
  RowJson json;
  json.facts = {{"name", runs.front().run_name.str()},
                {"configuration", configuration_json(row.configuration)}};
  if (!error.empty()) {
    json.facts["outcome"] =
        to_string(row.result.outcome == Outcome::measured ? Outcome::failed : row.result.outcome);
    json.facts["error_message"] = error;
  }
  if (measured.empty()) {
    return json;
  }
  json.facts["repetitions"] = runs.front().repetitions;
  std::vector<std::string> warnings = row.warnings;
  for (const std::string& doubt : row.gpu.doubts()) {
    warnings.push_back(doubt);
  }
  if (!warnings.empty()) {
    json.facts["warnings"] = warnings;
  }
  if (!row.result.verification.reference.empty()) {
    json.facts["verification"] = verification_json(row.result.verification);
  }
  if (!measured.front()->report_label.empty()) {
    json.facts["label"] = measured.front()->report_label;
  }
  if (!row.result.workload.empty()) {
    json.facts["workload"] = row.result.workload;
  }
  if (!row.result.chosen.empty()) {
    json.facts["chosen"] = configuration_json(row.result.chosen);
  }
  if (row.result.minimum_work) {
    json.facts["minimum_work"] = minimum_work_json(*row.result.minimum_work);
  }
  const bool same_iterations = std::all_of(
      measured.begin(), measured.end(),
      [&](const Repetition* run) { return run->iterations == measured.front()->iterations; });
  for (const Repetition* run : measured) {
    Json& repetition = json.repetitions.emplace_back();
    repetition = {{"name", run->run_name.str()}, {"run_type", "iteration"}};
    put(repetition, "real_time", run->GetAdjustedRealTime());
    put(repetition, "cpu_time", run->GetAdjustedCPUTime());
    repetition["time_unit"] = benchmark::GetTimeUnitString(run->time_unit);
    if (run == measured.front() || !same_iterations) {
      repetition["iterations"] = run->iterations;
    }
  }
  put_counters(measured, json);
  return json;
}

std::vector<Json> aggregates_json(const std::vector<Repetition>& runs) {
  std::vector<Json> entries;
  for (const Repetition& run : runs) {
    const bool is_time = run.aggregate_unit == benchmark::kTime;
    Json& entry = entries.emplace_back();
    entry = {{"name", run.run_name.str() + "_" + run.aggregate_name},
             {"run_name", run.run_name.str()},
             {"run_type", "aggregate"},
             {"aggregate_name", run.aggregate_name},
             {"aggregate_unit", is_time ? "time" : "percentage"}};
    put(entry, "real_time", is_time ? run.GetAdjustedRealTime() : run.real_accumulated_time);
    put(entry, "cpu_time", is_time ? run.GetAdjustedCPUTime() : run.cpu_accumulated_time);
    entry["time_unit"] = benchmark::GetTimeUnitString(run.time_unit);
  }
  return entries;
}

}  // namespace crossover::bench
