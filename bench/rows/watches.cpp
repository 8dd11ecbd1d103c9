// SPDX-License-Identifier: Apache-2.0
#include "rows/watches.h"

#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/times.h"

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

// ---- gpu state

nlohmann::ordered_json gpu_json(const Description& gpu, const GpuState& now) {
  nlohmann::ordered_json json = {{"name", gpu.libraries.at("gpu")}};
  const auto put = [&json](const char* key, const auto& value) {
    if (value) {
      json[key] = *value;
    }
  };
  const auto put_number = [&json](const char* key, auto value) {
    if (value > 0) {
      json[key] = value;
    }
  };
  put_number("multiprocessors", gpu.multiprocessors);
  put_number("memory_bytes", gpu.memory_bytes);
  put_number("cache_bytes", gpu.cache_bytes);
  put_number("start_seconds", gpu.start_seconds);
  put("driver", gpu.gpu.driver);
  put("sm_clock_max_mhz", gpu.gpu.sm_clock_max_mhz);
  put("memory_clock_max_mhz", gpu.gpu.memory_clock_max_mhz);
  put("sm_clock_mhz", now.sm_clock_mhz);
  put("memory_clock_mhz", now.memory_clock_mhz);
  put("power_limit_watts", gpu.gpu.power_limit_watts);
  put("persistence_mode", gpu.gpu.persistence_mode);
  put("ecc", gpu.gpu.ecc);
  return json;
}

void run_until_clock_stands(PreparedBenchmark& prepared,
                            const std::function<std::optional<int>()>& clock_mhz, double seconds) {
  using Clock = std::chrono::steady_clock;
  using Seconds = std::chrono::duration<double>;
  constexpr double most_times = 10;
  const Seconds most(std::min(longest_warm_up_seconds, most_times * seconds));
  const auto start = Clock::now();
  std::optional<int> before;
  std::optional<int> now = clock_mhz();
  do {
    const auto begun = Clock::now();
    do {
      prepared.run();
    } while (Clock::now() - begun < Seconds(seconds));
    before = std::exchange(now, clock_mhz());
  } while (now != before && Clock::now() - start < most);
}

void GpuWatch::before(const Device& device) {
  if (!highest_possible_mhz_) {
    const Description& description = device.description;
    highest_possible_mhz_ = description.gpu.sm_clock_max_mhz;
    constexpr double reserved = 1.2;  // by the driver, and for error correction: less
    is_slice_ = static_cast<double>(description.gpu.memory_bytes.value_or(0)) >
                reserved * static_cast<double>(description.memory_bytes);
  }
  before_ = device.state();
  note(before_);
}

void GpuWatch::after(const Device& device) {
  after_ = device.state();
  note(after_);
}

void GpuWatch::note(const GpuState& state) {
  if (state.sm_clock_mhz) {
    lowest_mhz_ = std::min(lowest_mhz_.value_or(*state.sm_clock_mhz), *state.sm_clock_mhz);
    highest_mhz_ = std::max(highest_mhz_.value_or(*state.sm_clock_mhz), *state.sm_clock_mhz);
  }
  throttle_reasons_.insert(state.throttle_reasons.begin(), state.throttle_reasons.end());
}

void GpuWatch::count(nlohmann::ordered_json& counters) const {
  if (before_.sm_clock_mhz && after_.sm_clock_mhz) {
    counters["sm_clock_mhz_before"] = *before_.sm_clock_mhz;
    counters["sm_clock_mhz_after"] = *after_.sm_clock_mhz;
  }
  if (before_.temperature_celsius && after_.temperature_celsius) {
    counters["temperature_celsius_before"] = *before_.temperature_celsius;
    counters["temperature_celsius_after"] = *after_.temperature_celsius;
  }
}

std::vector<std::string> GpuWatch::doubts() const {
  std::vector<std::string> doubts;
  constexpr double nearly_all = 0.9;
  if (is_slice_) {
    doubts.emplace_back(
        "the GPU is a slice of a card, whose clocks and power are those of all its slices");
  }
  // At its power limit a GPU is as fast as it gets: that is the reason below.
  const bool has_reason = throttle_reasons_.contains("power cap");
  if (!has_reason && lowest_mhz_ && highest_possible_mhz_ &&
      *lowest_mhz_ < nearly_all * *highest_possible_mhz_) {
    doubts.push_back("the GPU's SM clock was " + std::to_string(*lowest_mhz_) + " to " +
                     std::to_string(*highest_mhz_) + " MHz around the timed loops, of at most " +
                     std::to_string(*highest_possible_mhz_) + " MHz");
  }
  if (!throttle_reasons_.empty()) {
    std::string all;
    for (const std::string& reason : throttle_reasons_) {
      all += (all.empty() ? "" : ", ") + reason;
    }
    doubts.push_back("the GPU's clocks were held back: " + all);
  }
  return doubts;
}

// ---- Energy

namespace {

namespace files = std::filesystem;
constexpr double microjoule = 1e-6;

std::string first_line(const files::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

double number_in(const files::path& path) {
  errno = 0;
  std::ifstream file(path);
  double number = 0;
  if (!(file >> number)) {
    const std::string why = errno == 0 ? "it holds no number" : std::strerror(errno);
    throw std::runtime_error(path.string() + " can't be read (" + why +
                             (errno == EACCES ? "): sudo chmod a+r it, or run as root" : ")"));
  }
  return number;
}

/// Of a counter that is read again and again: when it moved.
class Moves {
 public:
  void look(double joules, std::chrono::steady_clock::time_point now) {
    if (joules_ && joules != *joules_) {
      if (moved_) {
        const std::chrono::duration<double> stood = now - *moved_;
        longest_seconds_ = std::max(longest_seconds_.value_or(0), stood.count());
      }
      moved_ = now;
      ++count_;
    }
    joules_ = joules;
  }
  [[nodiscard]] int count() const { return count_; }
  /// Between two moves; none before the second.
  [[nodiscard]] std::optional<double> longest_seconds() const { return longest_seconds_; }

 private:
  std::optional<double> joules_;
  std::optional<std::chrono::steady_clock::time_point> moved_;
  int count_ = 0;
  std::optional<double> longest_seconds_;
};

}  // namespace

std::vector<Meter> powercap_meters(const std::string& root) {
  std::vector<files::path> zones;
  std::error_code error;
  for (const auto& entry : files::directory_iterator(root, error)) {
    const std::string folder = entry.path().filename();
    const std::string name = first_line(entry.path() / "name");
    if (folder.starts_with("intel-rapl:") && (name.starts_with("package") || name == "dram")) {
      zones.push_back(entry.path());
    }
  }
  if (zones.empty()) {
    throw std::runtime_error("this machine counts no energy of its processors (" + root +
                             " has no package of RAPL): virtual machines have none; "
                             "--meter=COMMAND reads another meter");
  }
  std::ranges::sort(zones);
  std::vector<Meter> meters;
  for (const files::path& zone : zones) {
    meters.push_back(
        {.name = "rapl " + first_line(zone / "name"),
         .counts = "cpu",
         .joules = [energy = zone / "energy_uj"] { return number_in(energy) * microjoule; },
         .wraps_joules = number_in(zone / "max_energy_range_uj") * microjoule,
         .resolution_joules = microjoule});
    static_cast<void>(meters.back().joules());
  }
  return meters;
}

Meter command_meter(const std::string& command) {
  const auto joules = [command] {
    std::FILE* const pipe = popen(command.c_str(), "re");  // NOLINT(cert-env33-c): the user's
    std::array<char, 128> text{};
    const bool has_line =
        pipe != nullptr && std::fgets(text.data(), static_cast<int>(text.size()), pipe) != nullptr;
    const int status = pipe == nullptr ? -1 : pclose(pipe);
    char* end = text.data();
    const double told = std::strtod(text.data(), &end);
    if (!has_line || status != 0 || end == text.data() || !std::isfinite(told)) {
      throw std::runtime_error("--meter=" + command +
                               " must print the joules so far as a number, and end with 0");
    }
    return told;
  };
  return {.name = command, .counts = "machine", .joules = joules};
}

EnergyWatch::EnergyWatch(const std::string& command) : of_whole_machine_(!command.empty()) {
  try {
    if (of_whole_machine_) {
      meters_.push_back(command_meter(command));
      static_cast<void>(meters_.front().joules());
    } else {
      meters_ = powercap_meters();
    }
  } catch (const std::runtime_error& why) {
    meters_.clear();
    reason_ = why.what();
  }
}

EnergyWatch::Readings EnergyWatch::read(const GpuJoules& gpu_joules) {
  Readings found{.joules = {}, .of_gpu = {}, .when = {}};
  if (gpu_joules) {
    found.of_gpu = gpu_joules();
  }
  try {
    for (const Meter& meter : meters_) {
      found.joules.push_back(meter.joules());
    }
  } catch (const std::runtime_error& why) {
    found.joules.clear();
    reason_ = why.what();
  }
  found.when = std::chrono::steady_clock::now();
  return found;
}

void EnergyWatch::before(const Device& device) {
  has_own_memory_ = device.has_own_memory();
  before_ = read([&device] { return device.state().joules; });
}

void EnergyWatch::after(const Device& device) {
  after_ = read([&device] { return device.state().joules; });
}

std::optional<double> EnergyWatch::between(const Readings& first, const Readings& last) const {
  if (first.joules.empty() || first.joules.size() != last.joules.size()) {
    return std::nullopt;
  }
  double sum = 0;
  for (std::size_t i = 0; i < first.joules.size(); ++i) {
    double taken = last.joules[i] - first.joules[i];
    if (taken < 0) {
      const std::optional<double> range = meters_[i].wraps_joules;
      if (!range || taken + *range < 0) {
        return std::nullopt;  // it was set back
      }
      taken += *range;
    }
    sum += taken;
  }
  return sum;
}

std::optional<double> EnergyWatch::taken_by_gpu(const Readings& first, const Readings& last) {
  const bool is_known = first.of_gpu && last.of_gpu && *last.of_gpu >= *first.of_gpu;
  return is_known ? std::optional(*last.of_gpu - *first.of_gpu) : std::nullopt;
}

void EnergyWatch::count(std::int64_t iterations, nlohmann::ordered_json& counters) const {
  const std::chrono::duration<double> seconds = after_.when - before_.when;
  if (seconds.count() < shortest_seconds_ || iterations < 1) {
    return;
  }
  const auto of_one = [&](double joules) { return joules / static_cast<double>(iterations); };
  const std::optional<double> own = between(before_, after_);
  const auto of_gpu = taken_by_gpu(before_, after_);
  if (of_gpu) {
    counters["joules_gpu"] = of_one(*of_gpu);
  }
  if (own) {
    counters[of_whole_machine_ ? "joules_machine" : "joules_cpu"] = of_one(*own);
  }
  if (own && (!has_own_memory_ || of_whole_machine_ || of_gpu)) {
    counters["joules"] = of_one(*own + (of_whole_machine_ ? 0 : of_gpu.value_or(0)));
  }
}

void EnergyWatch::watch_updates(double most_seconds, const GpuJoules& gpu_joules) {
  constexpr int enough = 10;
  constexpr std::chrono::microseconds pause(200);  // processors' meters move every millisecond
  const Readings first = read(gpu_joules);
  of_gpu_.reset();
  gpu_reason_.clear();
  if (first.of_gpu) {
    constexpr double millijoule = 1e-3;
    of_gpu_ = {.name = "nvml", .counts = "gpu", .joules = {}, .resolution_joules = millijoule};
  } else if (gpu_joules) {
    gpu_reason_ =
        "the GPU's driver tells no energy: NVML counts that of cards of compute "
        "capability 7.0 or later";
  }
  std::vector<Moves> moves(first.joules.size());
  Moves gpu_moves;
  const auto look = [&](const Readings& now) {
    bool are_enough = true;
    const auto look_at = [&](Moves& of, double joules) {
      of.look(joules, now.when);
      are_enough = are_enough && of.count() >= enough;
    };
    for (std::size_t i = 0; i < now.joules.size(); ++i) {
      look_at(moves[i], now.joules[i]);
    }
    if (now.of_gpu) {
      look_at(gpu_moves, *now.of_gpu);
    }
    return are_enough;
  };
  const std::chrono::duration<double> most(most_seconds);
  for (Readings now = first; !look(now) && now.when - first.when < most; now = read(gpu_joules)) {
    std::this_thread::sleep_for(pause);
  }
  for (std::size_t i = 0; i < moves.size(); ++i) {
    meters_[i].update_seconds = moves[i].longest_seconds();
  }
  if (of_gpu_) {
    of_gpu_->update_seconds = gpu_moves.longest_seconds();
  }
}

void EnergyWatch::count_error(double loop_seconds, std::map<std::string, double>& counters) const {
  std::vector<Meter> all = meters_;
  if (of_gpu_) {
    all.push_back(*of_gpu_);
  }
  double longest_seconds = 0;
  for (const Meter& meter : all) {
    if (counters.contains("joules_" + meter.counts)) {
      if (!meter.update_seconds) {
        return;
      }
      longest_seconds = std::max(longest_seconds, *meter.update_seconds);
    }
  }
  constexpr double ends = 2;  // of the loop, at each of which a meter is up to an update behind
  if (longest_seconds > 0) {
    counters["joules_error"] = ends * longest_seconds / loop_seconds;
  }
}

EnergyWatch::Watts EnergyWatch::idle_watts(double seconds, const GpuJoules& gpu_joules) {
  const Readings first = read(gpu_joules);
  if (first.joules.empty() && !first.of_gpu) {
    return {};
  }
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  const Readings last = read(gpu_joules);
  const std::chrono::duration<double> passed = last.when - first.when;
  Watts watts;
  if (const std::optional<double> taken = between(first, last)) {
    watts.of_meters = *taken / passed.count();
  }
  if (const std::optional<double> taken = taken_by_gpu(first, last)) {
    watts.of_gpu = *taken / passed.count();
  }
  return watts;
}

nlohmann::ordered_json EnergyWatch::describe() const {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  const auto number_or_null = [](const std::optional<double>& number) {
    return number ? nlohmann::ordered_json(*number) : nlohmann::ordered_json();
  };
  const auto add = [&](const Meter& meter) {
    json["meters"].push_back({{"name", meter.name},
                              {"counts", meter.counts},
                              {"resolution_joules", number_or_null(meter.resolution_joules)},
                              {"update_seconds", number_or_null(meter.update_seconds)}});
  };
  std::ranges::for_each(meters_, add);
  if (of_gpu_) {
    add(*of_gpu_);
  }
  if (!reason_.empty()) {
    json["reason"] = reason_;
  }
  if (!gpu_reason_.empty()) {
    json["gpu_reason"] = gpu_reason_;
  }
  return json;
}

std::unique_ptr<EnergyWatch> energy_watch_of(bool is_wanted, const std::string& meter) {
  return is_wanted ? std::make_unique<EnergyWatch>(meter) : nullptr;
}

}  // namespace crossover::bench
