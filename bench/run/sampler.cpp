// SPDX-License-Identifier: Apache-2.0
#include "run/sampler.h"

#include <chrono>
#include <utility>

#include "rows/facts.h"
#include "run/peer.h"
#include "run/say.h"

namespace crossover::bench {
namespace {

/// It ended for a reason that says nothing against the repetitions before.
bool is_unavailable(const Row& row) {
  return row.record.outcome == Outcome::skipped ||
         (row.record.outcome == Outcome::failed && row.record.reason == row.device->failure);
}

void add(const Json& from, Spent& to) {
  to.timed += from.value("timed", 0.0);
  to.warm_up += from.value("warm_up", 0.0);
  to.verification += from.value("verification", 0.0);
  to.profile += from.value("profile", 0.0);
  to.making += from.value("making", 0.0);
}

std::map<std::string, double> numbers_in(const Json& json) {
  std::map<std::string, double> numbers;
  for (const auto& [key, value] : json.items()) {
    if (value.is_number()) {
      numbers[key] = value.get<double>();
    }
  }
  return numbers;
}

/// `times`: of one iteration, in milliseconds, and what else was measured.
Repetition repetition_in(const Json& times) {
  constexpr double milliseconds = 1e-3;
  Repetition repetition{.seconds = times.at("real_time").get<double>() * milliseconds,
                        .cpu_seconds = times.at("cpu_time").get<double>() * milliseconds,
                        .iterations = times.at("iterations"),
                        .counters = numbers_in(times)};
  for (const char* key : {"real_time", "cpu_time", "iterations"}) {
    repetition.counters.erase(key);
  }
  return repetition;
}

std::size_t turns_of(const Record& record) {
  return record.repetitions.size() + (record.outcome != Outcome::measured ? 1 : 0);
}

}  // namespace

Json Sampler::ask(Row& row, const Json& request) {
  Worker& worker = worker_of(row);
  const Instant start = std::chrono::steady_clock::now();
  Json answer;
  try {
    answer = worker.ask(request);
  } catch (const WorkerEnded& error) {
    prepared_.erase(&worker);
    answer = {{"outcome", "failed"}, {"error_message", error.what()}};
  }
  if (const auto spent = answer.find("spent"); spent != answer.end()) {
    add(*spent, spent_);
  } else if (row.worker != nullptr) {
    spent_.lent += seconds_since(start);
  }
  return answer;
}

bool Sampler::ended(Row& row, const Json& answer) {
  if (!answer.contains("outcome")) {
    return false;
  }
  Record& record = row.record;
  record.outcome = answer["outcome"] == "skipped" ? Outcome::skipped : Outcome::failed;
  record.reason = answer.value("error_message", "no reason was given");
  record.out_of_memory = answer.value("out_of_memory", false);
  if (answer.value("device_failed", false)) {
    row.device->failure = record.reason;
  }
  return true;
}

bool Sampler::prepare(const std::string& name, Row& row) {
  Record& record = row.record;
  Json request = {
      {"do", "prepare"}, {"row", name}, {"configuration", configuration_json(row.configuration)}};
  if (row.counted) {
    request["counted"] = row.counted();
  }
  if (!record.repetitions.empty()) {  // it stays what it was
    request["iterations"] = record.repetitions.front().iterations;
    if (const Configuration chosen = record.chosen(); !chosen.empty()) {
      request["chosen"] = configuration_json(chosen);
    }
  }
  const Json answer = ask(row, request);
  if (ended(row, answer)) {
    return false;
  }
  record.facts = answer.at("facts");
  once_[name] = numbers_in(answer.at("once"));
  ++record.instances;
  prepared_[&worker_of(row)].insert(name);
  return true;
}

std::optional<double> Sampler::repeat(const std::string& name) {
  Row& row = rows_[name];
  Record& record = row.record;
  if (record.outcome != Outcome::measured ||
      (!prepared_[&worker_of(row)].contains(name) && !prepare(name, row))) {
    return std::nullopt;
  }
  const Json answer = ask(row, {{"do", "repeat"},
                                {"row", name},
                                {"min_time_seconds", row.min_time_seconds > 0 ? row.min_time_seconds
                                                                              : min_time_seconds_},
                                {"after_another", last_ != name}});
  last_ = name;
  if (ended(row, answer)) {
    prepared_[&worker_of(row)].erase(name);
    return std::nullopt;
  }
  Repetition repetition = repetition_in(answer.at("times"));
  repetition.instance = record.instances - 1;
  repetition.counters.merge(std::exchange(once_[name], {}));
  record.repetitions.push_back(std::move(repetition));
  record.doubts = answer.value("doubts", record.doubts);
  return record.repetitions.back().seconds;
}

void Sampler::release(const std::string& name, Row& row) {
  if (prepared_[&worker_of(row)].erase(name) > 0) {
    ask(row, {{"do", "release"}, {"row", name}});
  }
}

void Sampler::forget(const std::string& name) {
  release(name, rows_[name]);
  rows_[name].record = {};
}

void Sampler::finish(const std::string& name) {
  Row& row = rows_[name];
  Reported& reported = reported_[name];
  if (turns_of(row.record) == reported.turns) {
    return;
  }
  release(name, row);
  if (!row.lead.empty()) {
    check_against_lead(row, rows_[row.lead]);
  }
  if (reported.turns > 0 && is_unavailable(row)) {
    say(name + " keeps the repetitions that it has: " + row.record.reason);
    std::vector<Repetition> all = std::move(row.record.repetitions);
    row.record = reported.record;
    row.record.repetitions = std::move(all);
    if (turns_of(row.record) == reported.turns) {
      return;
    }
  }
  reported = {.turns = turns_of(row.record), .record = row.record};
  reporter_.add(name);
}

}  // namespace crossover::bench
