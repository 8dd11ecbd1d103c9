// SPDX-License-Identifier: Apache-2.0
#include "rows/row.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <new>
#include <utility>

#include "base/times.h"
#include "crossover/names.h"
#include "rows/counters.h"

namespace crossover::bench {

std::string row_name(const RowSpec& spec) {
  std::string name;
  for (const auto& [key, value] : configuration_of(spec)) {
    if (name.empty()) {
      name = value;
    } else {
      name.append("/").append(key).append(":").append(value);
    }
  }
  return name;
}

bool is_of_a_peer(const Row& row) { return row.spec.program != RowSpec().program; }

std::string work_of(const Row& row) {
  return row_name(part_of(row.spec, [](const Axis& axis) { return axis.role == AxisRole::what; }));
}

double verify_or_note(Result& result, const std::function<void()>& verify) {
  result.tell("verifying it");
  const Instant start = std::chrono::steady_clock::now();
  try {
    verify();
  } catch (const Mismatch& mismatch) {
    result.not_verified = mismatch;
    result.first_steps.reset();  // nobody is to come to these
  }
  const double seconds = seconds_since(start);
  result.verification_seconds += seconds;
  return seconds;
}

nlohmann::ordered_json ended_by_exception() {
  using Json = nlohmann::ordered_json;
  const auto out_of_memory = [](const std::string& why) -> Json {
    return {{"outcome", "skipped"}, {"error_message", why}, {"out_of_memory", true}};
  };
  try {
    throw;
  } catch (const Unsupported& error) {
    return {{"outcome", "skipped"}, {"error_message", error.what()}};
  } catch (const OutOfMemory& error) {
    return out_of_memory(error.what());
  } catch (const std::bad_alloc&) {
    return out_of_memory("out of memory");
  } catch (const DeviceFailed& error) {
    return {{"outcome", "failed"}, {"error_message", error.what()}, {"device_failed", true}};
  } catch (const std::exception& error) {
    return {{"outcome", "failed"}, {"error_message", error.what()}};
  }
}

void RowProfile::take(Program& program, double timed_seconds) {
  constexpr double profiled_share = 0.1;  // of the time of a row's repetitions
  timed_seconds_ += timed_seconds;
  const double affordable = profiled_share * timed_seconds;
  // Of a row that was made again the former profile will do, unless one more costs little.
  const auto of_one = timed_seconds / static_cast<double>(std::max<std::int64_t>(1, iterations_));
  if (profiled_seconds_ < profiled_share * timed_seconds_ &&
      (iterations_ == 0 || of_one < affordable)) {
    const Instant start = std::chrono::steady_clock::now();
    count_profile(program, affordable, result_.counters);
    const double seconds = seconds_since(start);
    profiled_seconds_ += seconds;
    result_.profile_seconds += seconds;
  }
}

bool is_in_f32(const Row& row) {
  return row.spec.precision.value_or(Precision::f32) == Precision::f32;
}

void Rows::add(Row row) {
  const std::string name = row_name(row.spec);
  if (rows_.emplace(name, std::move(row)).second) {
    names_.push_back(name);
  }
}

std::string to_string(Outcome outcome) {
  constexpr std::array named{std::pair{"measured", Outcome::measured},
                             std::pair{"failed", Outcome::failed},
                             std::pair{"skipped", Outcome::skipped}};
  return name_in(named, outcome);
}

namespace {

double lost_to(const char* counter, const Repetition& repetition) {
  const auto found = repetition.counters.find(counter);
  return found != repetition.counters.end() ? found->second : 0;
}

/// That have work, and wait where other programs run: on a GPU the one that starts it, too.
int threads_of(const Row& row) {
  const RowSpec chosen = row.record.chosen().value_or(RowSpec());
  const int computing = chosen.threads.value_or(row.spec.threads.value_or(1));
  return row.record.facts.value("threads_used", computing) + row.spec.loader;
}

}  // namespace

int disturbed_repetitions(const Row& row) {
  constexpr double tolerated = 0.05;  // of the time of its loop
  const double threads = threads_of(row);
  const double processors = usable_processors();
  return static_cast<int>(
      std::ranges::count_if(row.record.repetitions, [&](const Repetition& repetition) {
        return lost_to("cpu_wait", repetition) / threads +
                   lost_to("cpu_steal", repetition) / processors >
               tolerated;
      }));
}

std::vector<std::string> doubts_about(const Row& row) {
  std::vector<std::string> all = row.warnings;
  all.insert(all.end(), row.record.doubts.begin(), row.record.doubts.end());
  std::ranges::move(doubts_about_times(row.record.repetitions), std::back_inserter(all));
  return all;
}

std::vector<std::string> doubts_about_times(const std::vector<Repetition>& repetitions) {
  constexpr std::size_t few = 5;          // of fewer nobody can tell
  constexpr double far_apart = 0.25;      // of the fastest
  constexpr double worth_telling = 0.01;  // of a processor
  constexpr double percent = 100;
  std::vector<std::string> doubts;
  if (repetitions.size() >= few) {
    const auto [least, most] = std::ranges::minmax(repetitions, {}, &Repetition::seconds);
    if (const double apart = most.seconds / least.seconds - 1; apart > far_apart) {
      doubts.push_back("its slowest repetition took " +
                       std::to_string(std::lround(percent * apart)) + " % longer than its fastest");
    }
  }
  const auto stolen = [](const Repetition& repetition) { return lost_to("cpu_steal", repetition); };
  const auto times = std::ranges::count_if(
      repetitions, [&](double share) { return share > worth_telling; }, stolen);
  if (times > 0) {
    const double most = stolen(std::ranges::max(repetitions, {}, stolen));
    doubts.push_back("a hypervisor took up to " + std::to_string(std::lround(percent * most)) +
                     " % of a processor in " + std::to_string(times) + " of " +
                     std::to_string(repetitions.size()) + " repetitions");
  }
  return doubts;
}

std::optional<RowSpec> Record::chosen() const {
  const auto at = facts.find("chosen");
  return at == facts.end() ? std::nullopt : std::optional(spec_in(*at));
}

std::vector<double> Record::seconds() const {
  std::vector<double> all;
  std::ranges::transform(repetitions, std::back_inserter(all), &Repetition::seconds);
  return all;
}

// ---- As JSON

namespace {

nlohmann::ordered_json verification_json(const RowVerification& verification) {
  nlohmann::ordered_json json = {{"reference", verification.reference}};
  if (!verification.unit.empty()) {
    json[verification.unit] = verification.compared;
    json[verification.unit + "_of"] = verification.of;
  }
  json["tolerance"] = verification.tolerance;
  json["relative_error"] = verification.error;
  json.update(verification.more);
  return json;
}

/// What is not there is none.
nlohmann::ordered_json minimum_work_json(const MinimumWork& least) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  const std::initializer_list<std::pair<const char*, double>> amounts{
      {"flops", least.flops},
      {"memory_bytes", least.memory_bytes},
      {"bytes_to_device", least.bytes_to_device},
      {"bytes_from_device", least.bytes_from_device},
      {"launches", least.launches}};
  for (const auto& [name, amount] : amounts) {
    if (amount != 0) {
      json[name] = amount;
    }
  }
  if (least.graph) {
    json["graph"] = true;
  }
  return json;
}

}  // namespace

nlohmann::ordered_json facts_json(const Result& result) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (!result.verification.reference.empty()) {
    json["verification"] = verification_json(result.verification);
  }
  if (!result.label.empty()) {
    json["label"] = result.label;
  }
  if (!result.workload.empty()) {
    json["workload"] = result.workload;
  }
  if (result.chosen) {
    json["chosen"] = configuration_json(*result.chosen);
  }
  if (!result.library_engines.empty()) {
    json["convolutions"] = result.library_engines;
  }
  if (result.minimum_work) {
    json["minimum_work"] = minimum_work_json(*result.minimum_work);
  }
  for (const auto& [counter, value] : result.counters) {
    if (kind_of_counter(counter) == CounterKind::fact) {
      json[counter] = value;
    }
  }
  return json;
}

Repetition repetition_in(const nlohmann::ordered_json& json) {
  Repetition repetition{.seconds = seconds_in(json.at("real_time")),
                        .cpu_seconds = seconds_in(json.at("cpu_time")),
                        .iterations = json.value("iterations", std::int64_t{0})};
  for (const auto& [key, value] : json.items()) {
    if (value.is_number() && key != "real_time" && key != "cpu_time" && key != "iterations" &&
        key != "instance") {
      repetition.counters[key] = value.get<double>();
    }
  }
  return repetition;
}

nlohmann::ordered_json first_steps_json(const FirstSteps& steps) {
  return {{"losses", steps.losses}, {"norms", steps.norms}};
}

FirstSteps first_steps_in(const nlohmann::ordered_json& json) {
  return {.losses = json.at("losses").get<std::vector<double>>(),
          .norms = json.at("norms").get<std::vector<double>>()};
}

}  // namespace crossover::bench
