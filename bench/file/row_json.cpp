// SPDX-License-Identifier: Apache-2.0
#include "file/row_json.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <sstream>

#include "command_line/flag.h"
#include "rows/counters.h"
#include "rows/row.h"

namespace crossover::bench {
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

/// What is the same in all repetitions stands in the first of them alone.
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
    const bool same = std::ranges::all_of(
        repetitions, [&](const Repetition& one) { return value(one) == first; });
    for (std::size_t i = 0; i < (same ? 1 : repetitions.size()); ++i) {
      if (Json number = number_json(value(repetitions[i])); !number.is_null()) {
        to[i][name] = std::move(number);
      }
    }
  }
}

Repetition repetition_in(const Json& entry, const std::vector<Repetition>& before) {
  constexpr double milliseconds = 1e-3;
  Repetition one = before.empty() ? Repetition() : before.front();
  std::erase_if(one.counters, [](const auto& counter) {  // what is the same in all stands once
    return kind_of_counter(counter.first) != CounterKind::repetition;
  });
  one.seconds = milliseconds * entry.at("real_time").get<double>();
  one.cpu_seconds = milliseconds * entry.at("cpu_time").get<double>();
  one.iterations = entry.value("iterations", one.iterations);
  one.instance = entry.value("instance", 0);
  for (const auto& [key, value] : entry.items()) {
    if (value.is_number() && key != "real_time" && key != "cpu_time" && key != "iterations" &&
        key != "instance") {
      one.counters[key] = value.get<double>();
    }
  }
  return one;
}

}  // namespace

Record record_in(const WrittenRow& written, const std::vector<std::string>& planned_warnings) {
  try {
    Record record;
    record.facts = Json::parse(written.facts);
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
        record.repetitions.push_back(repetition_in(entry, record.repetitions));
        record.instances = std::max(record.instances, record.repetitions.back().instance + 1);
      }
    }
    return record;
  } catch (const Json::exception&) {
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
  Json facts = {{"name", name}, {"configuration", configuration_json(row.configuration)}};
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
  std::vector<std::string> warnings = row.warnings;
  warnings.insert(warnings.end(), record.doubts.begin(), record.doubts.end());
  if (!warnings.empty()) {
    facts["warnings"] = warnings;
  }
  facts.update(rounded(record.facts));
  const Repetition& first = repetitions.front();
  const bool same_iterations = std::ranges::all_of(
      repetitions, [&](const Repetition& one) { return one.iterations == first.iterations; });
  constexpr double in_milliseconds = 1e3;
  std::vector<Json> entries;
  for (const Repetition& repetition : repetitions) {
    Json& entry = entries.emplace_back();
    entry = {{"name", name},
             {"run_type", "iteration"},
             {"real_time", number_json(in_milliseconds * repetition.seconds)},
             {"cpu_time", number_json(in_milliseconds * repetition.cpu_seconds)},
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
