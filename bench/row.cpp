// SPDX-License-Identifier: Apache-2.0
#include "row.h"

#include <algorithm>
#include <chrono>
#include <new>

#include "expected_seconds.h"
#include "measure.h"

namespace crossover::bench {

std::string row_name(const Configuration& configuration) {
  std::string name;
  for (const auto& [key, value] : configuration) {
    if (name.empty()) {
      name = value;
    } else {
      name.append("/").append(key).append(":").append(value);
    }
  }
  return name;
}

void Rows::add(Row row) {
  const std::string name = row_name(row.configuration);
  if (rows_.emplace(name, std::move(row)).second) {
    names_.push_back(name);
  }
}

void Rows::register_benchmarks(const std::vector<std::string>& names, double min_time_seconds) {
  min_time_seconds_ = min_time_seconds;
  for (const std::string& name : names) {
    auto* registered = benchmark::RegisterBenchmark(
        name.c_str(), [this, name](benchmark::State& state) { run(state, name); });
    registered->Unit(benchmark::kMillisecond);
    const Row& row = rows_.at(name);
    if (row.repetitions > 0) {
      registered->Repetitions(row.repetitions);
    }
    if (row.min_time_seconds > 0) {
      registered->MinTime(row.min_time_seconds);
    }
  }
}

void Rows::run(benchmark::State& state, const std::string& name) {
  const bool is_first = !prepared_.contains(name);
  Prepared* prepared = prepare(name);
  if (prepared == nullptr) {
    state.SkipWithError(refusals_.at(name).c_str());
    return;
  }
  Row& row = rows_.at(name);
  try {
    warm_up(row, *prepared, is_first);
    prepared->start();
    row.gpu.before(*row.device->backend);
    measure(state, *prepared);
    row.gpu.after(*row.device->backend);
    prepared->check();
  } catch (const std::exception&) {
    refuse(name);
    prepared_.erase(name);
    state.SkipWithError(refusals_.at(name).c_str());
    return;
  }
  state.SetLabel(prepared->label);
  for (const auto& [counter, value] : prepared->counters) {
    state.counters[counter] = value;
  }
  row.gpu.count(state.counters);
}

void Rows::warm_up(const Row& row, Prepared& prepared, bool is_first) const {
  if (row.device->name() == "cpu") {
    return;
  }
  const double loop = row.min_time_seconds > 0 ? row.min_time_seconds : min_time_seconds_;
  const std::chrono::duration<double> seconds(
      std::min(is_first ? first_warm_up_seconds : warm_up_seconds, 2 * loop));
  const auto start = std::chrono::steady_clock::now();
  do {
    prepared.run();
  } while (std::chrono::steady_clock::now() - start < seconds);
}

Prepared* Rows::prepare(const std::string& name) {
  if (const auto made = prepared_.find(name); made != prepared_.end()) {
    return made->second.get();
  }
  if (refusals_.contains(name)) {
    return nullptr;
  }
  Row& row = rows_.at(name);
  try {
    if (!row.device->failure.empty()) {
      throw Unsupported("the GPU failed in an earlier row: " + row.device->failure);
    }
    std::unique_ptr<Prepared> made = row.make();
    row.verification = made->verification;
    row.demand = made->demand;
    return (prepared_[name] = std::move(made)).get();
  } catch (const std::exception&) {
    refuse(name);
    return nullptr;
  }
}

void Rows::refuse(const std::string& name) {
  Row& row = rows_.at(name);
  const auto note = [&](Outcome outcome, const char* why) {
    row.outcome = outcome;
    refusals_[name] = why;
  };
  try {
    throw;
  } catch (const Unsupported& error) {
    note(Outcome::skipped, error.what());
  } catch (const OutOfMemory& error) {
    note(Outcome::skipped, error.what());
  } catch (const std::bad_alloc&) {
    note(Outcome::skipped, "the memory ran out");
  } catch (const DeviceFailed& error) {
    row.device->failure = error.what();
    note(Outcome::failed, error.what());
  } catch (const std::exception& error) {
    note(Outcome::failed, error.what());
  }
}

}  // namespace crossover::bench
