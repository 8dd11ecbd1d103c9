// SPDX-License-Identifier: Apache-2.0
#include "two/side_row.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/times.h"

namespace crossover::two {
namespace {

using bench::Instant;
using bench::seconds_since;
using Clock = std::chrono::steady_clock;

constexpr double shortest_telling = 50e-6;  // of seconds that can be told from noise

void pause(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

/// The harness knows what becomes of a row whose device is lost.
template <class Call>
void on_device(const Call& call) {
  try {
    call();
  } catch (const DeviceLost& lost) {
    throw DeviceFailed(lost.what());
  }
}

/// A side with its data, and its parts as they are timed.
class HeldSide {
 public:
  HeldSide(std::unique_ptr<Run> run, const Side& side) : run_(std::move(run)), side_(side) {}

  [[nodiscard]] Run& run() { return *run_; }
  [[nodiscard]] const Side& side() const { return side_; }

  void wait() const {
    if (side_.device.wait) {
      side_.device.wait();
    }
  }
  void copy_in() {
    run_->copy_in();
    wait();
  }
  void restore() {
    if (side_.restores) {
      run_->restore();
      wait();
    }
  }
  void copy_out() {
    run_->copy_out();
    wait();
  }

 private:
  std::unique_ptr<Run> run_;
  const Side& side_;
};

/// Seconds of `call` alone.
template <class Call>
double timed(const Call& call) {
  const Instant start = Clock::now();
  call();
  return seconds_since(start);
}

// ---- Whether a side returns before its work is done.

constexpr const char* too_early = "it returns before its work is done: ";
constexpr const char* remedy = "; wait for that in the side, or give its device a wait";

std::string milliseconds(double seconds) {
  return detail::shown(static_cast<double>(std::llround(seconds * 1e5)) / 1e2) + " ms";
}

/// Throws where the result changes behind a call that took so long.
void require_rest(HeldSide& held, double call_seconds) {
  constexpr double least = 0.02;
  constexpr double most = 1;
  constexpr double times = 4;
  held.run().remember();
  const double seconds = std::clamp(times * call_seconds, least, most);
  pause(seconds);
  held.copy_out();
  if (held.run().has_moved()) {
    throw std::runtime_error(too_early + std::string("its result changed within ") +
                             milliseconds(seconds) + " behind the call" + remedy);
  }
}

/// Throws where the copy of the result waits for what the call has left behind: copied right behind
/// the call it takes longer than later, by more than the whole call, however often one looks.
void require_idle(HeldSide& held) {
  constexpr int most_looks = 5;
  constexpr double rest = 2e-3;
  double call = 0;
  double excess = 0;
  for (int look = 0; look < most_looks; ++look) {
    held.restore();
    call = timed([&] {
      held.run().run();
      held.wait();
    });
    const double at_once = timed([&] { held.copy_out(); });
    pause(std::max(rest, at_once));
    excess = at_once - timed([&] { held.copy_out(); });
    if (excess < std::max(shortest_telling, call)) {
      return;
    }
  }
  throw std::runtime_error(too_early + std::string("a call takes ") + milliseconds(call) +
                           ", and the copy of its result waits for " + milliseconds(excess) +
                           " more" + remedy);
}

/// Throws where the result is not the right one, or becomes it later.
Difference require_right(HeldSide& held) {
  Difference found = held.run().from_right();
  if (found.words.empty()) {
    return found;
  }
  constexpr double patience = 1;
  constexpr double a_while = 0.05;
  const Instant start = Clock::now();
  while (seconds_since(start) < patience) {
    pause(a_while);
    held.copy_out();
    if (held.run().from_right().words.empty()) {
      throw std::runtime_error(too_early + std::string("its result was right only ") +
                               milliseconds(seconds_since(start)) + " behind the call" + remedy);
    }
  }
  throw std::runtime_error("its result is wrong: " + found.words);
}

// ---- The row.

/// What its first call has told.
struct FirstCall {
  double first_seconds = 0;  ///< with the making of what it holds
  double seconds = 0;        ///< of the call that was waited for
};

/// `checks_end`: whether nobody has looked yet if it returns too early.
FirstCall call_first(HeldSide& held, double making_seconds, bool checks_end) {
  held.copy_in();
  held.restore();
  FirstCall first;
  first.seconds = timed([&] {
    held.run().run();
    held.wait();
  });
  first.first_seconds = making_seconds + first.seconds;
  held.copy_out();
  if (checks_end) {
    require_rest(held, first.seconds);
    if (held.side().copies) {
      require_idle(held);
    }
  }
  return first;
}

HeldSide held_side(Work& work, std::size_t side, double& making_seconds) {
  const Instant start = Clock::now();
  HeldSide held(work.make(side), work.sides[side]);
  making_seconds = seconds_since(start);
  return held;
}

/// By what others are judged: the first side that can run here.
std::size_t judge_of(const Work& work) {
  const auto at = std::ranges::find_if(
      work.sides, [](const Side& side) { return side.device.missing.empty(); });
  return static_cast<std::size_t>(at - work.sides.begin());
}

/// Of one call among several that are waited for together, `call_seconds` being that of one alone.
double seconds_back_to_back(HeldSide& held, double call_seconds) {
  constexpr double enough = 0.02;
  constexpr double least = 2;
  constexpr double most = 1000;
  const auto calls = static_cast<int>(std::clamp(enough / call_seconds, least, most));
  const double seconds = timed([&] {
    for (int call = 0; call < calls; ++call) {
      held.run().run();
    }
    held.wait();
  });
  return seconds / calls;
}

/// By the device's own clock; nothing where the device works on, since the side has work where that
/// clock does not look, such as in a stream that waits for no other. A call before it keeps the
/// device busy while the host gives it this one, so that a launch that is shorter than the work is
/// not counted.
std::optional<double> seconds_of_device(HeldSide& held) {
  held.restore();
  if (!held.side().restores) {
    held.run().run();
  }
  const double seconds = held.side().device.seconds([&] { held.run().run(); });
  const double left = timed([&] { held.wait(); });
  return left < std::max(shortest_telling, seconds) ? std::optional(seconds) : std::nullopt;
}

/// Medians of the parts of a few calls; of a device also what a call takes seen in other ways.
void count_parts(HeldSide& held, std::map<std::string, double>& counters) {
  constexpr std::size_t most = 9;
  constexpr double enough = 0.1;
  std::map<std::string, std::vector<double>> parts;
  const Instant start = Clock::now();
  do {
    if (held.side().copies) {
      parts["copy_in_seconds"].push_back(timed([&] { held.copy_in(); }));
    }
    held.restore();
    parts["call_seconds"].push_back(timed([&] { held.run().run(); }));
    parts["wait_seconds"].push_back(timed([&] { held.wait(); }));
    if (held.side().copies) {
      parts["copy_out_seconds"].push_back(timed([&] { held.copy_out(); }));
    }
    if (held.side().device.seconds) {
      if (const auto seconds = seconds_of_device(held)) {
        parts["device_seconds"].push_back(*seconds);
      }
    }
  } while (parts["call_seconds"].size() < most && seconds_since(start) < enough);
  if (2 * parts["device_seconds"].size() <= parts["call_seconds"].size()) {
    parts.erase("device_seconds");
  }
  for (const auto& [part, seconds] : parts) {
    counters[part] = bench::median(seconds);
  }
  if (held.side().device.wait && !held.side().restores) {
    counters["back_to_back_seconds"] =
        seconds_back_to_back(held, counters["call_seconds"] + counters["wait_seconds"]);
  }
}

/// What the problem says of a call of that size. std::runtime_error where that is no amount.
void count_work(const SideAt& at, std::map<std::string, double>& counters) {
  const auto count = [&](const char* key, const std::function<double(std::int64_t size)>& of) {
    if (!of) {
      return;
    }
    const double amount = counters[key] = of(at.size);
    if (!(amount > 0) || !std::isfinite(amount)) {
      throw std::runtime_error("its problem says that a call has " + detail::shown(amount) + " " +
                               key + "; correct that in the program");
    }
  };
  count("items", at.work.items);
  count("bytes", at.work.bytes);
}

/// Writes over what the caches hold: of this core, and those that cores share.
void flush_processor() {
  constexpr std::size_t of_a_line = 64 / sizeof(std::uint64_t);
  static std::vector<std::uint64_t> words = [] {
    constexpr int least_bytes = 1 << 25;
    int largest = least_bytes;
    for (const auto& cache : benchmark::CPUInfo::Get().caches) {
      largest = std::max(largest, cache.size);
    }
    return std::vector<std::uint64_t>(2 * static_cast<std::size_t>(largest) /
                                      sizeof(std::uint64_t));
  }();
  for (std::size_t at = 0; at < words.size(); at += of_a_line) {
    ++words[at];
  }
  benchmark::ClobberMemory();
}

class SideRow : public bench::PreparedBenchmark {
 public:
  SideRow(HeldSide held, const SideAt& at, double call_seconds)
      : held_(std::move(held)),
        copies_each_(at.copies_each),
        flushes_(at.flushes),
        call_seconds_(call_seconds) {
    if (flushes_) {
      flush();  // the first one makes room for what is written
    }
  }

  /// Threads of OpenMP spin behind the work of another side; this one must not be timed beside
  /// them.
  void start() override {
    constexpr double until_threads_sleep = 0.01;
    constexpr double longest_warm_up = 0.02;
    if (std::exchange(numbers().last, number_) != number_) {
      pause(until_threads_sleep);
      if (call_seconds_ < longest_warm_up) {
        run();
      }
    }
  }

  [[nodiscard]] bool restores() const override { return flushes_ || restores_input(); }
  void restore() override {
    on_device([&] {
      if (restores_input()) {
        held_.restore();
      }
      if (flushes_) {
        flush();
      }
    });
    is_fresh_ = true;
  }

  void run() override {
    if (restores() && !std::exchange(is_fresh_, false)) {  // nobody times this one
      restore();
      is_fresh_ = false;
    }
    on_device([&] {
      if (copies_each_) {
        held_.run().copy_in();
      }
      held_.run().run();
      if (copies_each_) {
        held_.run().copy_out();
      }
      held_.wait();
    });
    benchmark::DoNotOptimize(held_.run().result());
    benchmark::ClobberMemory();
  }

  /// State that calls leave behind may spoil the later ones.
  void check() override {
    if (!held_.run().has_right()) {
      return;
    }
    on_device([&] { held_.copy_out(); });
    if (const std::string words = held_.run().from_right().words; !words.empty()) {
      throw std::runtime_error("its result is wrong after several calls: " + words);
    }
  }

 private:
  [[nodiscard]] bool restores_input() const { return held_.side().restores && !copies_each_; }
  void flush() const {
    flush_processor();
    if (const auto& of_device = held_.side().device.flush) {
      of_device();
      held_.wait();
    }
  }

  /// How many rows were made, of whatever side, and which ran last.
  struct Numbers {
    int made = 0, last = 0;
  };
  static Numbers& numbers() {
    static Numbers of_all;
    return of_all;
  }

  HeldSide held_;
  bool copies_each_;
  bool flushes_;
  double call_seconds_;
  int number_ = ++numbers().made;
  bool is_fresh_ = false;
};

}  // namespace

std::unique_ptr<bench::PreparedBenchmark> make_row(const SideAt& at, bench::Result& result) {
  const Side& side = at.work.sides[at.side];
  if (!side.device.missing.empty()) {
    throw Unsupported(side.device.missing);
  }
  result.tell("making its input");
  at.work.begin(at.size);
  std::unique_ptr<bench::PreparedBenchmark> row;
  on_device([&] {
    const bool is_first_instance = result.iterations == 0;
    double making_seconds = 0;
    HeldSide held = held_side(at.work, at.side, making_seconds);
    const Instant start = Clock::now();
    result.tell("verifying it");
    const FirstCall first = call_first(held, making_seconds, is_first_instance);
    const std::size_t judge = judge_of(at.work);
    if (!at.work.knows_right()) {
      if (judge == at.side) {
        held.run().take_as_right();
      } else {
        double ignored = 0;
        HeldSide other = held_side(at.work, judge, ignored);
        try {
          call_first(other, 0, is_first_instance);
        } catch (const DeviceLost&) {
          throw;
        } catch (const std::runtime_error& error) {
          throw std::runtime_error("nothing to compare it with: " + at.work.sides[judge].name +
                                   ", the first side, is wrong: " + error.what());
        }
        other.run().take_as_right();
      }
    }
    const Difference found = require_right(held);
    result.verification = {.reference = at.work.has_right
                                            ? "the problem's own right result"
                                            : "the result of " + at.work.sides[judge].name,
                           .unit = found.entries > 0 ? "entries" : "",
                           .compared = found.entries,
                           .of = found.entries,
                           .tolerance = at.work.tolerance,
                           .error = found.relative_error};
    const double verification_seconds = seconds_since(start);
    result.verification_seconds += verification_seconds;
    result.counters["verification_seconds"] = verification_seconds;
    result.counters["first_call_seconds"] = first.first_seconds;
    result.counters["count"] = 1;
    count_work(at, result.counters);
    if (is_first_instance && !at.flushes) {
      count_parts(held, result.counters);
    }
    row = std::make_unique<SideRow>(std::move(held), at, first.seconds);
  });
  return row;
}

}  // namespace crossover::two
