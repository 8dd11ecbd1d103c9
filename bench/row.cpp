// SPDX-License-Identifier: Apache-2.0
#include "row.h"

#include <algorithm>
#include <chrono>
#include <new>

#include "expected_seconds.h"
#include "measure.h"

namespace crossover::bench {
namespace {

/// In an exception's handler: what it says of the row, and of its device where that is lost.
void refuse(Row& row) {
  row.prepared.reset();
  const auto note = [&](Outcome outcome, const char* why) {
    row.result.outcome = outcome;
    row.result.reason = why;
  };
  try {
    throw;
  } catch (const Unsupported& error) {
    note(Outcome::skipped, error.what());
  } catch (const OutOfMemory& error) {
    note(Outcome::skipped, error.what());
  } catch (const std::bad_alloc&) {
    note(Outcome::skipped, "out of memory");
  } catch (const DeviceFailed& error) {
    row.device->failure = error.what();
    note(Outcome::failed, error.what());
  } catch (const std::exception& error) {
    note(Outcome::failed, error.what());
  }
}

/// Before the row's first repetition.
void prepare(Row& row) {
  if (!row.device->failure.empty()) {
    throw Unsupported("the GPU failed in an earlier row: " + row.device->failure);
  }
  row.prepared = row.make(row.result);
}

/// Runs it untimed until a GPU's clocks have risen: once at least. Nothing on the CPU.
void warm_up(const Row& row, double most_seconds) {
  if (row.device->is_host) {
    return;
  }
  const std::chrono::duration<double> seconds(most_seconds);
  const auto start = std::chrono::steady_clock::now();
  do {
    row.prepared->run();
  } while (std::chrono::steady_clock::now() - start < seconds);
}

/// Google Benchmark calls this for every trial and repetition.
void run(benchmark::State& state, Row& row, double min_time_seconds) {
  if (row.result.outcome == Outcome::measured) {
    try {
      const bool is_first = !row.prepared;
      if (is_first) {
        prepare(row);
      }
      warm_up(row,
              std::min(is_first ? first_warm_up_seconds : warm_up_seconds, 2 * min_time_seconds));
      row.prepared->start();
      row.gpu.before(*row.device->backend);
      measure(state, *row.prepared);
      row.gpu.after(*row.device->backend);
      row.prepared->check();
    } catch (const std::exception&) {
      refuse(row);
    }
  }
  if (row.result.outcome != Outcome::measured) {
    state.SkipWithError(row.result.reason.c_str());
    return;
  }
  state.SetLabel(row.result.label);
  for (const auto& [counter, value] : row.result.counters) {
    state.counters[counter] = value;
  }
  row.gpu.count(state.counters);
}

}  // namespace

std::string to_string(Outcome outcome) {
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
  row.configuration = in_order(row.configuration);
  const std::string name = row_name(row.configuration);
  if (rows_.emplace(name, std::move(row)).second) {
    names_.push_back(name);
  }
}

void Rows::register_benchmarks(const std::vector<std::string>& names, double min_time_seconds) {
  for (const std::string& name : names) {
    Row& row = rows_.at(name);
    const double least = row.min_time_seconds > 0 ? row.min_time_seconds : min_time_seconds;
    auto* registered = benchmark::RegisterBenchmark(
        name.c_str(), [&row, least](benchmark::State& state) { run(state, row, least); });
    registered->Unit(benchmark::kMillisecond);
    if (row.repetitions > 0) {
      registered->Repetitions(row.repetitions);
    }
    if (row.min_time_seconds > 0) {
      registered->MinTime(row.min_time_seconds);
    }
  }
}

}  // namespace crossover::bench
