// SPDX-License-Identifier: Apache-2.0
#include "run/sampler.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <sstream>
#include <thread>
#include <utility>

#include "axes/flag.h"
#include "base/say.h"
#include "rows/counters.h"
#include "rows/row.h"
#include "rows/watches.h"
#include "run/peer.h"

namespace crossover::bench {
namespace {

/// Threads of OpenMP spin behind their last work, by default 300,000 times (GCC's libgomp): those
/// of another program must not do that beside what is timed.
constexpr std::chrono::milliseconds until_threads_sleep(10);

/// Of the answer's times those of a pause, which stands in the longest of them.
void leave_out(double paused, Json& answer) {
  if (answer.contains("spent") && !answer["spent"].empty()) {
    Json& spent = answer["spent"];
    Json& longest = *std::ranges::max_element(spent);
    longest = std::max(0.0, longest.get<double>() - paused);
  }
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

std::size_t turns_of(const Record& record) {
  return record.repetitions.size() + (record.outcome != Outcome::measured ? 1 : 0);
}

}  // namespace

double Sampler::limit_seconds(const Row& row) const {
  constexpr double doubt = 10;  // of what a row is expected to take
  const double expected = row.expected.all + row.reference_seconds;
  return std::max(options_.patience_seconds * (is_of_a_peer(row) ? patience_with_peers : 1),
                  doubt * expected);
}

Json Sampler::ask(Row& row, const Json& request) {
  Worker& worker = worker_of(row);
  const Instant start = std::chrono::steady_clock::now();
  Json answer;
  bool has_ended = false;
  try {
    answer = worker.ask(request, limit_seconds(row));
    has_ended = (answer.value("device_failed", false) || answer.value("worker_ends", false)) &&
                worker.replace({});
  } catch (const WorkerEnded& error) {
    has_ended = true;
    answer = {{"outcome", "failed"}, {"error_message", error.what()}};
  }
  if (has_ended) {
    prepared_.erase(&worker);
    answer["ended_worker"] = true;
    if (row.device->has_own_memory()) {
      look_after_gpu(row, answer["error_message"], seconds_since(start));
    }
  } else if (answer.value("device_failed", false)) {
    row.device->failure = answer["error_message"];
  }
  constexpr double worth_telling = 1;  // second
  if (const double paused = worker.paused_seconds(); paused > worth_telling) {
    say("nothing ran for " + std::to_string(std::lround(paused)) +
        " s, which count neither as patience nor as time spent");
    spent_.leave_out(paused);
    leave_out(paused, answer);
    answer["was_paused"] = true;
  }
  if (const auto spent = answer.find("spent"); spent != answer.end()) {
    for (const auto& [part, seconds] : parts_of_spent) {
      spent_.*seconds += std::max(0.0, spent->value(part, 0.0));
    }
  } else if (is_of_a_peer(row)) {
    spent_.lent += seconds_since(start);
  }
  return answer;
}

void Sampler::look_after_gpu(Row& row, const std::string& error, double lost_seconds) {
  constexpr double most = 10;  // times the patience
  Worker& worker = worker_of(row);
  lost_seconds_ += lost_seconds;
  if (lost_seconds_ > most * options_.patience_seconds) {
    std::ostringstream reason;
    reason << error << " (rows that ended so took " << std::lround(lost_seconds_) << " s)";
    give_up(*row.device, reason.str());
  } else if (&worker == &worker_) {
    try {
      const Json described = worker.ask({{"do", "describe"}}, options_.patience_seconds);
      if (!described.value("devices", Json()).contains(row.device->name())) {
        give_up(*row.device, error);
      }
    } catch (const WorkerEnded& /*again*/) {
      give_up(*row.device, error);
    }
  }
}

void Sampler::give_up(Device& gpu, const std::string& reason) {
  gpu.failure = reason;
  say("the GPU is lost, and its other rows are left out: " + reason);
  worker_.replace({"--" + gpu.name() + "=off"});  // whoever asks for a lost GPU may wait for ever
  prepared_.erase(&worker_);
}

void Sampler::begin_anew(const std::string& name) {
  Row& row = rows_[name];
  row.warnings.push_back("measured in a second try; in the first one: " + row.record.reason);
  row.costs = {};
  row.telling = {};
  put_back(name);
}

bool Sampler::ended(Row& row, const Json& answer) {
  if (!answer.contains("outcome")) {
    return false;
  }
  Record& record = row.record;
  record.outcome = answer["outcome"] == "skipped" ? Outcome::skipped : Outcome::failed;
  record.reason = answer.value("error_message", "no reason was given");
  record.out_of_memory = answer.value("out_of_memory", false);
  record.ended_worker = answer.contains("ended_worker") || answer.contains("device_failed");
  record.not_verified = answer.value("not_verified", Json());
  return true;
}

bool Sampler::prepare(const std::string& name, Row& row) {
  Record& record = row.record;
  Json request = {
      {"do", "prepare"}, {"row", name}, {"configuration", configuration_json(row.spec)}};
  if (!row.label.empty()) {
    request["label"] = row.label;
  }
  if (row.network_facts) {
    request["counted"] = row.network_facts();
  }
  if (row.lead.empty() && !row.network.empty()) {
    request["network"] = row.network;
  }
  if (!record.repetitions.empty()) {  // it stays what it was
    request["iterations"] =           // of those that were not ended before
        std::ranges::max(record.repetitions, {}, &Repetition::iterations).iterations;
    if (const auto chosen = record.facts.find("chosen"); chosen != record.facts.end()) {
      request["chosen"] = *chosen;
    }
  }
  Telling& telling = row.telling;
  if (telling.first_steps) {
    request["first_steps"] = *telling.first_steps;
  }
  const double begun = spent_.all();
  const Json answer = ask(row, request);
  if (ended(row, answer)) {
    return false;
  }
  record.facts.update(answer.at("facts"));  // that of the first was verified, and says how
  RowCosts& costs = row.costs;
  const double seconds = spent_.all() - begun;
  if (costs.first_making == 0) {
    costs.first_making = seconds;
  }
  // Of one that had to choose how to run, nobody knows yet how long a further instance takes.
  if (!answer["facts"].contains("chosen") || request.contains("chosen")) {
    costs.making = seconds;
    if (const auto told = answer.find("spent"); told != answer.end()) {  // no process was started
      const bool is_verified_once =
          answer.contains("first_steps") && !request.contains("first_steps");
      costs.making = told->value("making", 0.0) + told->value("profile", 0.0) +
                     (is_verified_once ? 0 : told->value("verification", 0.0));
    }
  }
  if (answer.contains("first_steps") && !telling.first_steps) {
    telling.first_steps = answer["first_steps"];
  }
  if (record.instances == 0) {
    telling.once = numbers_in(answer.at("once"));
  }
  ++record.instances;
  telling.earlier_doubts = record.doubts;
  prepared_[&worker_of(row)].insert(name);
  return true;
}

void Sampler::renew_workers() {
  for (auto& [worker, rows] : prepared_) {
    if (worker->renew()) {
      rows.clear();
    }
  }
}

void Sampler::begin_pass(const std::string& words, bool is_first) {
  if (!is_first) {
    renew_workers();
  }
  reporter_.begin_pass(words, is_first);
}

std::optional<double> Sampler::repeat(const std::string& name) {
  Row& row = rows_[name];
  Record& record = row.record;
  if (record.outcome == Outcome::measured && !row.device->failure.empty()) {
    record.outcome = Outcome::skipped;
    record.reason = after_failed_gpu + row.device->failure;
  }
  if (record.outcome != Outcome::measured ||
      (!prepared_[&worker_of(row)].contains(name) && !prepare(name, row))) {
    return std::nullopt;
  }
  const double begun = spent_.all();
  if (Worker* const before = std::exchange(last_worker_, &worker_of(row));
      before != nullptr && before != last_worker_) {
    std::this_thread::sleep_for(until_threads_sleep);
  }
  const Json answer =
      ask(row, {{"do", "repeat"},
                {"row", name},
                {"min_time_seconds",
                 row.min_time_seconds > 0 ? row.min_time_seconds : options_.min_time_seconds},
                {"after_another", last_ != name}});
  last_ = name;
  if (ended(row, answer)) {
    prepared_[&worker_of(row)].erase(name);
    return std::nullopt;
  }
  Telling& telling = row.telling;
  Repetition repetition = repetition_in(answer.at("times"));
  repetition.instance = record.instances - 1;
  if (options_.energy != nullptr) {
    options_.energy->count_error(repetition.seconds * static_cast<double>(repetition.iterations),
                                 repetition.counters);
  }
  repetition.counters.merge(std::exchange(telling.once, {}));
  if (!record.repetitions.empty()) {  // what this instance did not profile, an earlier one did
    for (const auto& [counter, value] : record.repetitions.back().counters) {
      if (is_profile(counter)) {
        repetition.counters.emplace(counter, value);
      }
    }
  }
  record.repetitions.push_back(std::move(repetition));
  row.costs.repetition = spent_.all() - begun;
  if (answer.contains("was_paused") && !answer.contains("measured_again")) {
    telling.earlier_doubts.emplace_back(paused_within);
    record.doubts.emplace_back(paused_within);
  }
  if (answer.contains("doubts")) {  // of this instance
    record.doubts = telling.earlier_doubts;
    for (const std::string doubt : answer["doubts"]) {
      if (!contains(record.doubts, doubt)) {
        record.doubts.push_back(doubt);
      }
    }
  }
  return record.repetitions.back().seconds;
}

void Sampler::release(const std::string& name, Row& row) {
  if (prepared_[&worker_of(row)].erase(name) > 0) {
    ask(row, {{"do", "release"}, {"row", name}});
  }
}

void Sampler::put_back(const std::string& name) {
  Row& row = rows_[name];
  release(name, row);
  if (row.telling.reported_turns == 0) {
    row.costs = {};
    row.telling = {};
  }
  row.record = row.telling.reported;
}

void Sampler::finish(const std::string& name) {
  Row& row = rows_[name];
  Telling& telling = row.telling;
  if (turns_of(row.record) == telling.reported_turns) {
    return;
  }
  release(name, row);
  if (!row.lead.empty()) {
    check_against_lead(row, rows_[row.lead]);
  }
  // It ended for a reason that says nothing against the repetitions before.
  const bool is_unavailable = row.record.outcome == Outcome::skipped || row.record.ended_worker;
  if (telling.reported_turns > 0 && is_unavailable) {
    say(name + " keeps the repetitions that it has: " + row.record.reason);
    std::vector<Repetition> all = std::move(row.record.repetitions);
    const std::string reason = std::move(row.record.reason);
    row.record = telling.reported;
    row.record.repetitions = std::move(all);
    row.record.doubts.push_back("has not all its repetitions: " + reason);
    if (turns_of(row.record) == telling.reported_turns) {
      return;
    }
  }
  telling.reported_turns = turns_of(row.record);
  telling.reported = row.record;
  reporter_.add(name);
}

}  // namespace crossover::bench
