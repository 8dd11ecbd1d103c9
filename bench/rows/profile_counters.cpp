// SPDX-License-Identifier: Apache-2.0
#include "rows/profile_counters.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <numeric>
#include <vector>

namespace crossover::bench {
namespace {

constexpr std::array categories{OpCategory::product,        OpCategory::convolution,
                                OpCategory::normalization,  OpCategory::pooling,
                                OpCategory::elementwise,    OpCategory::reorder,
                                OpCategory::loss,           OpCategory::update,
                                OpCategory::copy_to_device, OpCategory::copy_from_device,
                                OpCategory::launch,         OpCategory::synchronization,
                                OpCategory::communication};

std::string counter_of(OpCategory category) { return "seconds_" + to_string(category); }

double total(const Profile& profile) {
  return std::accumulate(profile.begin(), profile.end(), 0.0,
                         [](double sum, const auto& part) { return sum + part.second; });
}

}  // namespace

std::string to_string(OpCategory category) {
  switch (category) {
    case OpCategory::product:
      return "product";
    case OpCategory::convolution:
      return "convolution";
    case OpCategory::normalization:
      return "normalization";
    case OpCategory::pooling:
      return "pooling";
    case OpCategory::elementwise:
      return "elementwise";
    case OpCategory::loss:
      return "loss";
    case OpCategory::update:
      return "update";
    case OpCategory::reorder:
      return "reorder";
    case OpCategory::copy_to_device:
      return "copy_to_device";
    case OpCategory::copy_from_device:
      return "copy_from_device";
    case OpCategory::launch:
      return "launch";
    case OpCategory::synchronization:
      return "synchronization";
    case OpCategory::communication:
      return "communication";
  }
  return "";
}

void count_profile(Program& program, double seconds, std::map<std::string, double>& counters) {
  constexpr std::size_t most = 21;
  const std::chrono::duration<double> enough(seconds);
  std::vector<Profile> profiles;
  const auto start = std::chrono::steady_clock::now();
  do {
    profiles.push_back(program.profile());
  } while (profiles.size() < most && std::chrono::steady_clock::now() - start < enough);
  std::sort(profiles.begin(), profiles.end(),
            [](const Profile& a, const Profile& b) { return total(a) < total(b); });
  for (const auto& [category, spent] : profiles[profiles.size() / 2]) {
    counters[counter_of(category)] = spent;
  }
}

bool is_profile(const std::string& counter) {
  return std::any_of(categories.begin(), categories.end(),
                     [&](OpCategory category) { return counter_of(category) == counter; });
}

}  // namespace crossover::bench
