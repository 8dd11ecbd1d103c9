// SPDX-License-Identifier: Apache-2.0
#include "run/sampler.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <stdexcept>

#include "rows/expected_seconds.h"
#include "rows/measure.h"
#include "run/say.h"

namespace crossover::bench {
namespace {

/// How a row takes its turn.
struct Turn {
  double min_time_seconds = 0;
  bool after_another = false;    ///< whose data are in the caches now
  double iteration_seconds = 0;  ///< 0: not known yet
};

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
    row.result.out_of_memory = true;
    note(Outcome::skipped, error.what());
  } catch (const std::bad_alloc&) {
    row.result.out_of_memory = true;
    note(Outcome::skipped, "out of memory");
  } catch (const DeviceFailed& error) {
    row.device->failure = error.what();
    note(Outcome::failed, error.what());
  } catch (const std::exception& error) {
    note(Outcome::failed, error.what());
  }
}

/// It ended for a reason that says nothing against the repetitions before.
bool can_not_be_had(const Row& row) {
  return row.result.outcome == Outcome::skipped ||
         (row.result.outcome == Outcome::failed && row.result.reason == row.device->failure);
}

/// Runs it untimed until a GPU's clocks have risen, once at least. On the CPU once, where another
/// row had its turn and it takes next to no time; a first repetition has its trials.
void warm_up(const Row& row, const Turn& turn, bool is_first) {
  if (row.device->is_host) {
    if (turn.after_another && turn.iteration_seconds > 0 &&
        turn.iteration_seconds < warm_up_seconds) {
      row.prepared->run();
    }
    return;
  }
  const std::chrono::duration<double> seconds(
      std::min(is_first ? first_warm_up_seconds : warm_up_seconds, 2 * turn.min_time_seconds));
  const auto start = std::chrono::steady_clock::now();
  do {
    row.prepared->run();
  } while (std::chrono::steady_clock::now() - start < seconds);
}

/// Google Benchmark calls this for every trial and repetition. All loops count as warm-up: the
/// caller knows which is kept.
void run(benchmark::State& state, Row& row, const Turn& turn, Spent& spent) {
  if (row.result.outcome == Outcome::measured) {
    Result& result = row.result;
    try {
      if (!row.device->failure.empty()) {  // in another row, perhaps since this one's last turn
        throw Unsupported(after_failed_gpu + row.device->failure);
      }
      const bool is_first = !row.prepared;
      if (is_first) {
        const double verified = result.verification_seconds;
        const double profiled = result.profile_seconds;
        const Instant start = std::chrono::steady_clock::now();
        row.prepared = row.make(row.result);
        const double of_verification = result.verification_seconds - verified;
        const double of_profile = result.profile_seconds - profiled;
        spent.verification += of_verification;
        spent.profile += of_profile;
        spent.making += seconds_since(start) - of_verification - of_profile;
      }
      Instant start = std::chrono::steady_clock::now();
      warm_up(row, turn, is_first);
      spent.warm_up += seconds_since(start);
      start = std::chrono::steady_clock::now();
      row.prepared->start();
      spent.making += seconds_since(start);
      row.gpu.before(*row.device->backend);
      start = std::chrono::steady_clock::now();
      measure(state, *row.prepared);
      spent.warm_up += seconds_since(start);
      row.gpu.after(*row.device->backend);
      start = std::chrono::steady_clock::now();
      const double profiled = result.profile_seconds;
      row.prepared->check();
      const double profile_seconds = result.profile_seconds - profiled;
      spent.verification += seconds_since(start) - profile_seconds;
      spent.profile += profile_seconds;
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

/// Keeps what Google Benchmark reports of one call.
class Collector : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context& /*context*/) override { return true; }
  void ReportRuns(const std::vector<Repetition>& runs) override {
    found_.insert(found_.end(), runs.begin(), runs.end());
  }
  [[nodiscard]] const std::vector<Repetition>& found() const { return found_; }

 private:
  std::vector<Repetition> found_;
};

/// How a row is measured is no part of its name; and what pointed into Google Benchmark's list of
/// rows is gone.
Repetition cleared(Repetition run) {
  run.run_name.min_time.clear();
  run.run_name.iterations.clear();
  run.run_name.repetitions.clear();
  run.statistics = nullptr;
  return run;
}

}  // namespace

std::optional<double> Sampler::repeat(const std::string& name) {
  Row& row = rows_[name];
  if (row.result.outcome != Outcome::measured) {
    return std::nullopt;
  }
  std::vector<Repetition>& taken = taken_[name];
  const Turn turn{
      .min_time_seconds = row.min_time_seconds > 0 ? row.min_time_seconds : min_time_seconds_,
      .after_another = last_ != name,
      .iteration_seconds = taken.empty() ? 0 : seconds_of(taken.back())};
  last_ = name;
  benchmark::ClearRegisteredBenchmarks();
  auto* registered = benchmark::RegisterBenchmark(
      name.c_str(), [&](benchmark::State& state) { run(state, row, turn, spent_); });
  registered->Unit(benchmark::kMillisecond)->Repetitions(1);
  if (!taken.empty()) {
    registered->Iterations(taken.front().iterations);
  } else if (row.min_time_seconds > 0) {
    registered->MinTime(row.min_time_seconds);
  }
  Collector collector;
  benchmark::RunSpecifiedBenchmarks(&collector);
  if (collector.found().size() != 1) {
    throw std::logic_error("Google Benchmark reports no repetition of " + name);
  }
  taken.push_back(cleared(collector.found().front()));
  if (!error_of(taken.back()).empty()) {
    return std::nullopt;
  }
  spent_.timed += taken.back().real_accumulated_time;
  spent_.warm_up -= taken.back().real_accumulated_time;
  if (companion_ != nullptr && !row.is_quiet) {
    const Instant lent = std::chrono::steady_clock::now();
    companion_->repeated(name, turn.min_time_seconds);
    spent_.lent += seconds_since(lent);
    last_.clear();
  }
  return seconds_of(taken.back());
}

void Sampler::forget(const std::string& name) {
  rows_.release(name);
  rows_[name].result = {};
  taken_.erase(name);
}

void Sampler::finish(const std::string& name) {
  std::vector<Repetition>& runs = taken_[name];
  Row& row = rows_[name];
  Reported& reported = reported_[name];
  if (runs.size() == reported.repetitions) {
    return;
  }
  rows_.release(name);
  if (reported.repetitions > 0 && can_not_be_had(row)) {
    say(name + " keeps the repetitions that it has: " + row.result.reason);
    row.result = reported.result;
    runs.pop_back();
    if (runs.size() == reported.repetitions) {
      return;
    }
  }
  reported = {.repetitions = runs.size(), .result = row.result};
  const auto measured = std::count_if(runs.begin(), runs.end(),
                                      [](const Repetition& run) { return error_of(run).empty(); });
  for (std::size_t i = 0; i < runs.size(); ++i) {
    runs[i].repetitions = std::max<std::int64_t>(measured, 1);
    runs[i].repetition_index = static_cast<std::int64_t>(i);
  }
  reporter_.add(name, runs);
  if (companion_ != nullptr && !row.is_quiet) {
    const Instant lent = std::chrono::steady_clock::now();
    companion_->finished(name);
    spent_.lent += seconds_since(lent);
  }
}

}  // namespace crossover::bench
