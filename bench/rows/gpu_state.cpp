// SPDX-License-Identifier: Apache-2.0
#include "rows/gpu_state.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "rows/expected_seconds.h"

namespace crossover::bench {

nlohmann::ordered_json gpu_json(const Backend& gpu) {
  const Description description = gpu.describe();
  const GpuState now = gpu.state();
  nlohmann::ordered_json json = {{"name", description.libraries.at("gpu")}};
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
  put_number("multiprocessors", description.multiprocessors);
  put_number("memory_bytes", description.memory_bytes);
  put_number("cache_bytes", description.cache_bytes);
  put_number("start_seconds", description.start_seconds);
  put("driver", description.gpu.driver);
  put("sm_clock_max_mhz", description.gpu.sm_clock_max_mhz);
  put("memory_clock_max_mhz", description.gpu.memory_clock_max_mhz);
  put("sm_clock_mhz", now.sm_clock_mhz);
  put("memory_clock_mhz", now.memory_clock_mhz);
  put("power_limit_watts", description.gpu.power_limit_watts);
  put("persistence_mode", description.gpu.persistence_mode);
  put("ecc", description.gpu.ecc);
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

void GpuWatch::before(const Backend& backend) {
  if (!highest_possible_mhz_) {
    const Description description = backend.describe();
    highest_possible_mhz_ = description.gpu.sm_clock_max_mhz;
    constexpr double reserved = 1.2;  // by the driver, and for error correction: less
    is_slice_ = static_cast<double>(description.gpu.memory_bytes.value_or(0)) >
                reserved * static_cast<double>(description.memory_bytes);
  }
  before_ = backend.state();
  note(before_);
}

void GpuWatch::after(const Backend& backend) {
  after_ = backend.state();
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

}  // namespace crossover::bench
