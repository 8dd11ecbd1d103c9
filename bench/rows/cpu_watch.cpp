// SPDX-License-Identifier: Apache-2.0
#include "rows/cpu_watch.h"

#include <unistd.h>

#include <cmath>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace crossover::bench {
namespace {

constexpr double nanosecond = 1e-9;
constexpr double worth_telling = 0.005;

/// "run wait slices" of each thread, in nanoseconds: Documentation/scheduler/sched-stats.rst.
std::optional<double> seconds_waited() {
  std::error_code error;
  double sum = 0;
  bool is_known = false;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", error)) {
    std::ifstream file(task.path() / "schedstat");
    double ran = 0;
    double waited = 0;
    if (file >> ran >> waited) {
      sum += waited * nanosecond;
      is_known = true;
    }
  }
  return is_known ? std::optional(sum) : std::nullopt;
}

/// Seconds of all processors by the first line of /proc/stat: user, nice, system, idle, iowait,
/// irq, softirq, steal.
std::vector<double> processor_seconds() {
  std::ifstream file("/proc/stat");
  std::string word;
  std::vector<double> seconds;
  constexpr std::size_t known = 8;
  if (file >> word && word == "cpu") {
    const auto ticks_per_second = static_cast<double>(sysconf(_SC_CLK_TCK));
    for (double ticks = 0; seconds.size() < known && file >> ticks;) {
      seconds.push_back(ticks / ticks_per_second);
    }
  }
  return seconds.size() == known ? seconds : std::vector<double>();
}

// How often this process went on after it was stopped: a signal handler reaches nothing but
// globals. NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
volatile std::sig_atomic_t continued = 0;

void note_continued(int /*signal*/) { continued = continued + 1; }

/// Since it was asked first.
int times_continued() {
  static const bool is_noted = [] {
    struct sigaction action {};
    action.sa_handler = note_continued;
    action.sa_flags = SA_RESTART;
    return sigaction(SIGCONT, &action, nullptr) == 0;
  }();
  return is_noted ? continued : 0;
}

double seconds_of(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * nanosecond;
}

/// So far: the clock of intervals stands still meanwhile.
double slept_seconds() { return seconds_of(CLOCK_BOOTTIME) - seconds_of(CLOCK_MONOTONIC); }

}  // namespace

PauseWatch::PauseWatch() : continued_(times_continued()), slept_seconds_(slept_seconds()) {}

bool PauseWatch::has_paused() const {
  constexpr double certain = 0.01;  // seconds
  return times_continued() != continued_ || slept_seconds() - slept_seconds_ > certain;
}

CpuWatch::Waits CpuWatch::now() {
  Waits waits{.of_threads = seconds_waited(), .when = std::chrono::steady_clock::now()};
  if (const std::vector<double> seconds = processor_seconds(); !seconds.empty()) {
    waits.stolen = seconds.back();
  }
  return waits;
}

void CpuWatch::before() { before_ = now(); }
void CpuWatch::after() { after_ = now(); }

void CpuWatch::count(nlohmann::ordered_json& counters) const {
  const double wall = std::chrono::duration<double>(after_.when - before_.when).count();
  if (wall <= 0) {
    return;
  }
  // Some process of the system always runs, and nobody needs more digits.
  const auto rounded = [](double share) {
    constexpr double thousand = 1000;
    return share > worth_telling ? std::round(share * thousand) / thousand : 0;
  };
  if (before_.of_threads && after_.of_threads) {
    counters["cpu_wait"] = rounded((*after_.of_threads - *before_.of_threads) / wall);
  }
  constexpr double fewest_ticks = 0.015;  // of one hundredth nobody knows when it was stolen
  if (before_.stolen && after_.stolen) {
    const double seconds = *after_.stolen - *before_.stolen;
    counters["cpu_steal"] = seconds > fewest_ticks ? rounded(seconds / wall) : 0;
  }
}

double busy_share(double seconds) {
  constexpr std::size_t idle = 3;
  constexpr std::size_t waits = 4;  // for a disk, which takes no processor
  const std::vector<double> first = processor_seconds();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  const std::vector<double> last = processor_seconds();
  if (first.empty() || last.empty()) {
    return 0;
  }
  double all = 0;
  double unused = 0;
  for (std::size_t i = 0; i < first.size(); ++i) {
    const double spent = last[i] - first[i];
    all += spent;
    unused += i == idle || i == waits ? spent : 0;
  }
  return all > 0 ? 1 - unused / all : 0;
}

}  // namespace crossover::bench
