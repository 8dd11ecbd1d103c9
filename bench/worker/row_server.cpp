// SPDX-License-Identifier: Apache-2.0
#include "worker/row_server.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "axes/axes.h"
#include "base/times.h"
#include "rows/counters.h"
#include "rows/row.h"
#include "rows/watches.h"

namespace crossover::bench {
namespace {

/// Ends a loop that others slow down so much that the rows behind it would have no time left.
class Patience {
 public:
  /// From now on; 0: for ever.
  explicit Patience(double seconds) {
    if (seconds > 0) {
      timer_ = std::jthread([this, seconds](const std::stop_token& stop) {
        std::mutex mutex;
        std::unique_lock lock(mutex);
        std::condition_variable_any().wait_for(lock, stop, std::chrono::duration<double>(seconds),
                                               [] { return false; });
        is_over_.store(!stop.stop_requested(), std::memory_order_relaxed);
      });
    }
  }

  [[nodiscard]] bool is_over() const { return is_over_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> is_over_ = false;
  std::jthread timer_;
};

/// A loop that was ended before all of its iterations.
struct Ended {
  std::int64_t iterations = 0;
  double seconds = 0, cpu_seconds = 0;
};

/// The timed loop. Google Benchmark holds the clock, and decides how often. It stands apart from
/// the loop below, which looks at the clock in each iteration.
std::optional<Ended> measure(benchmark::State& state, PreparedBenchmark& prepared,
                             double patience_seconds) {
  prepared.expect(state.max_iterations);
  const Patience patience(patience_seconds);
  const double processor_before = seconds_of(CLOCK_THREAD_CPUTIME_ID);
  const Instant start = std::chrono::steady_clock::now();
  std::int64_t iterations = 0;
  for ([[maybe_unused]] auto iteration : state) {
    prepared.run();
    ++iterations;
    if (patience.is_over() && iterations < state.max_iterations) {
      state.SkipWithError("ended before all of its iterations");
      break;
    }
  }
  if (iterations == state.max_iterations) {
    return std::nullopt;
  }
  return Ended{.iterations = iterations,
               .seconds = seconds_since(start),
               .cpu_seconds = seconds_of(CLOCK_THREAD_CPUTIME_ID) - processor_before};
}

/// The same of what restores its input, whose clock runs in the iterations alone. Google Benchmark
/// decides by that time how often.
std::optional<Ended> measure_restoring(benchmark::State& state, PreparedBenchmark& prepared,
                                       double patience_seconds) {
  prepared.expect(state.max_iterations);
  const Patience patience(patience_seconds);
  const double processor_before = seconds_of(CLOCK_THREAD_CPUTIME_ID);
  std::int64_t iterations = 0;
  double seconds = 0;
  for ([[maybe_unused]] auto iteration : state) {
    prepared.restore();
    const Instant start = std::chrono::steady_clock::now();
    prepared.run();
    const double taken = seconds_since(start);
    state.SetIterationTime(taken);
    seconds += taken;
    ++iterations;
    if (patience.is_over() && iterations < state.max_iterations) {
      state.SkipWithError("ended before all of its iterations");
      break;
    }
  }
  if (iterations == state.max_iterations) {
    return std::nullopt;
  }
  return Ended{.iterations = iterations,
               .seconds = seconds,
               .cpu_seconds = seconds_of(CLOCK_THREAD_CPUTIME_ID) - processor_before};
}

/// For how long a loop may go on: so many times what was expected, or longer where that is little.
/// Several ranks do as many iterations as they were told of; one whose time nobody knows goes on.
double patience_seconds_of(bool is_of_ranks, double expected_seconds) {
  constexpr double times = 20;
  constexpr double least_seconds = 2;
  return is_of_ranks || expected_seconds == 0 ? 0
                                              : std::max(least_seconds, times * expected_seconds);
}

/// Keeps what Google Benchmark reports of one call.
class Collector : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context& /*context*/) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    found_.insert(found_.end(), runs.begin(), runs.end());
  }
  [[nodiscard]] const std::vector<Run>& found() const { return found_; }

 private:
  std::vector<Run> found_;
};

/// Runs it untimed until a GPU's clock stands still. On the CPU once, where another row had its
/// turn and it takes next to no time; a first repetition has its trials.
void warm_up(PreparedBenchmark& prepared, const Device& device, bool is_first, bool after_another,
             double iteration_seconds, double min_time_seconds) {
  if (device.has_threads()) {
    if (after_another && iteration_seconds > 0 && iteration_seconds < warm_up_seconds) {
      prepared.run();
    }
    return;
  }
  run_until_clock_stands(
      prepared, [&device] { return device.state().sm_clock_mhz; },
      std::min(is_first ? first_warm_up_seconds : warm_up_seconds, 2 * min_time_seconds));
}

/// Seconds of an iteration of a row whose results are wrong: the median of a few.
double unverified_seconds(PreparedBenchmark& prepared) {
  constexpr std::size_t most = 9;
  constexpr double enough = 0.5;
  const Instant start = std::chrono::steady_clock::now();
  std::vector<double> seconds;
  prepared.start();
  prepared.run();
  do {
    const Instant begun = std::chrono::steady_clock::now();
    prepared.run();
    seconds.push_back(seconds_since(begun));
  } while (seconds.size() < most && seconds_since(start) < enough);
  return median(seconds);
}

Json not_verified_json(const Mismatch& found, double seconds) {
  Json json = {{"seconds", seconds}};
  if (found.error && std::isfinite(*found.error)) {
    json["relative_error"] = *found.error;
  }
  if (found.tolerance) {
    json["tolerance"] = *found.tolerance;
  }
  return json;
}

/// Since the last answer.
Json spent_json(Spent& spent) {
  const Spent last = std::exchange(spent, Spent{.start = spent.start});
  Json json;
  for (const auto& [part, seconds] : parts_of_spent) {
    json[part] = last.*seconds;
  }
  return json;
}

}  // namespace

Json RowServer::answer(const Json& request) {
  const std::string what = request.at("do");
  Json answer = Json::object();
  if (what == "prepare") {
    answer = prepare(request);
  } else if (what == "repeat") {
    answer = repeat(request);
  } else if (what == "release") {
    held_[request.at("row")].prepared.reset();
  } else {
    throw std::invalid_argument("no request is called '" + what + "'");
  }
  answer["spent"] = spent_json(spent_);
  return answer;
}

Json RowServer::prepare(const Json& request) {
  const std::string name = request.at("row");
  Held& held = held_[name];
  const double verified = held.result.verification_seconds;
  const double profiled = held.result.profile_seconds;
  const Instant start = std::chrono::steady_clock::now();
  Json answer;
  try {
    const RowSpec spec = spec_in(request.at("configuration"));
    const Source source = find_(name, spec);
    if (request.value("network", source.network) != source.network) {
      throw std::runtime_error(
          "its network is not the one that the run began with: the file of the network has "
          "changed; "
          "--resume measures the row");
    }
    if (!held.result.chosen && request.contains("chosen")) {  // by another process
      held.result.chosen = spec_in(request["chosen"]);
    }
    if (request.contains("first_steps")) {
      held.result.first_steps = first_steps_in(request["first_steps"]);
    }
    held.device = source.device;
    held.is_of_ranks = spec.ranks > 1;
    held.result.label = request.value("label", held.result.label);
    held.iterations = request.value("iterations", held.iterations);
    held.result.iterations = held.iterations;
    held.is_new = true;
    tell_("making it");
    held.result.tell = tell_;
    held.prepared = source.make(held.result);
    answer = {{"facts", facts_json(held.result)}, {"once", Json::object()}};
    if (held.result.first_steps) {
      answer["first_steps"] = first_steps_json(*held.result.first_steps);
    }
    for (const auto& [counter, value] : held.result.counters) {
      if (kind_of_counter(counter) == CounterKind::once) {
        answer["once"][counter] = value;
      }
    }
    if (const auto wrong = std::exchange(held.result.not_verified, std::nullopt)) {
      tell_("timing it, though its results are wrong");
      answer = {{"outcome", to_string(Outcome::failed)},
                {"error_message", wrong->what()},
                {"not_verified", not_verified_json(*wrong, unverified_seconds(*held.prepared))}};
      held.prepared.reset();
    }
  } catch (const std::exception&) {
    answer = refused(name);
  }
  const double of_verification = held.result.verification_seconds - verified;
  const double of_profile = held.result.profile_seconds - profiled;
  spent_.verification += of_verification;
  spent_.profile += of_profile;
  spent_.making += seconds_since(start) - of_verification - of_profile;
  return answer;
}

Json RowServer::repeat(const Json& request) {
  const std::string name = request.at("row");
  const double min_time_seconds = request.at("min_time_seconds");
  Held& held = held_[name];
  if (held.prepared == nullptr) {
    throw std::invalid_argument("repeat: " + name + " is not prepared");
  }
  const Device& device = *held.device;
  const bool restores = held.prepared->restores();
  std::exception_ptr failure;
  std::vector<double> of_ranks;
  std::optional<Ended> ended;
  const double patience_seconds = patience_seconds_of(
      held.is_of_ranks,
      std::max(min_time_seconds, static_cast<double>(held.iterations) * held.iteration_seconds));
  // Google Benchmark calls this for every trial and repetition. All loops count as warm-up: which
  // is kept shows in the end.
  const auto run = [&](benchmark::State& state) {
    if (failure) {
      state.SkipWithError("failed in an earlier trial");
      return;
    }
    try {
      tell_("running it");  // not later: whoever reads it must not disturb what is timed
      Instant start = std::chrono::steady_clock::now();
      warm_up(*held.prepared, device, std::exchange(held.is_new, false),
              request.value("after_another", true), held.iteration_seconds, min_time_seconds);
      spent_.warm_up += seconds_since(start);
      start = std::chrono::steady_clock::now();
      held.prepared->start();
      spent_.making += seconds_since(start);
      held.gpu.before(device);
      if (energy_) {
        energy_->before(device);
      }
      held.cpu.before();
      start = std::chrono::steady_clock::now();
      ended = restores ? measure_restoring(state, *held.prepared, patience_seconds)
                       : measure(state, *held.prepared, patience_seconds);
      of_ranks = held.prepared->seconds_of_ranks();
      spent_.warm_up += seconds_since(start);
      held.cpu.after();
      if (energy_) {
        energy_->after(device);
      }
      held.gpu.after(device);
      start = std::chrono::steady_clock::now();
      const double profiled = held.result.profile_seconds;
      tell_("checking its results");
      held.prepared->check();
      const double profile_seconds = held.result.profile_seconds - profiled;
      spent_.verification += seconds_since(start) - profile_seconds;
      spent_.profile += profile_seconds;
    } catch (const std::exception& error) {
      failure = std::current_exception();
      state.SkipWithError(error.what());
    }
  };
  benchmark::ClearRegisteredBenchmarks();
  auto* registered = benchmark::RegisterBenchmark(name.c_str(), run);
  registered->Unit(benchmark::kMillisecond)->Repetitions(1);
  if (restores) {
    registered->UseManualTime();
  }
  if (held.iterations > 0) {
    registered->Iterations(held.iterations);
  } else if (min_time_seconds > 0) {
    registered->MinTime(min_time_seconds);
  }
  constexpr int most_tries = 3;
  std::optional<Collector> collector;
  std::optional<PauseWatch> pauses;  // a time with a pause in it says nothing of the row
  int tries = 0;
  for (; tries == 0 || (tries < most_tries && !failure && pauses->has_paused()); ++tries) {
    pauses.emplace();
    benchmark::RunSpecifiedBenchmarks(&collector.emplace());
  }
  const bool is_whole = !pauses->has_paused();
  if (failure) {
    try {
      std::rethrow_exception(failure);
    } catch (const std::exception&) {
      return refused(name);
    }
  }
  if (collector->found().size() != 1) {
    throw std::logic_error("Google Benchmark reports no repetition of " + name);
  }
  benchmark::BenchmarkReporter::Run found = collector->found().front();
  if (ended) {
    found.iterations = ended->iterations;
    found.real_accumulated_time = ended->seconds;
    found.cpu_accumulated_time = ended->cpu_seconds;
  } else {
    held.iterations = found.iterations;
    held.iteration_seconds = found.real_accumulated_time / static_cast<double>(found.iterations);
  }
  spent_.timed += found.real_accumulated_time;
  spent_.warm_up -= found.real_accumulated_time;
  Json times = {{"real_time", found.GetAdjustedRealTime()},
                {"cpu_time", found.GetAdjustedCPUTime()},
                {"time_unit", "ms"},
                {"iterations", found.iterations}};
  if (!of_ranks.empty()) {  // the time is that of the slowest; this one has the clock
    of_ranks.front() = found.real_accumulated_time;
    const auto [least, most] = std::ranges::minmax_element(of_ranks);
    times["real_time"] = found.GetAdjustedRealTime() * *most / found.real_accumulated_time;
    times["rank_spread"] = (*most - *least) / *most;
  }
  for (const auto& [counter, value] : found.counters) {  // of Google Benchmark's own
    times[counter] = value.value;
  }
  for (const auto& [counter, value] : held.result.counters) {
    if (kind_of_counter(counter) == CounterKind::repetition) {
      times[counter] = value;
    }
  }
  held.gpu.count(times);
  held.cpu.count(times);
  if (energy_ && held.result.has_steps) {
    energy_->count(found.iterations, times);
  }
  Json answer = {{"times", times}, {"doubts", held.gpu.doubts()}};
  if (!is_whole) {
    answer["doubts"].push_back(paused_within);
  } else if (tries > 1) {
    answer["measured_again"] = true;
  }
  return answer;
}

Json RowServer::refused(const std::string& name) {
  held_[name].prepared.reset();
  return ended_by_exception();
}

}  // namespace crossover::bench
