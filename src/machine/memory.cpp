// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

#include "crossover/memory.h"

namespace crossover {
namespace {

constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();

std::int64_t number_in(const char* path, std::int64_t otherwise) {
  std::ifstream file(path);
  std::int64_t value = 0;
  return file >> value ? value : otherwise;
}

/// A line "MemAvailable:   123 kB" of /proc/meminfo, or "VmSize: 123 kB" of /proc/self/status, in
/// bytes.
std::int64_t kilobytes_in(const char* path, const std::string& key, std::int64_t otherwise) {
  std::ifstream file(path);
  for (std::string word; file >> word;) {
    std::int64_t kilobytes = 0;
    if (word == key && file >> kilobytes) {
      return kilobytes * 1024;
    }
  }
  return otherwise;
}

std::int64_t left_in_control_group() {
  // "max", where there is no limit, is no number.
  const std::int64_t limit = number_in("/sys/fs/cgroup/memory.max", unlimited);
  return limit == unlimited ? unlimited : limit - number_in("/sys/fs/cgroup/memory.current", 0);
}

std::int64_t left_of_address_space() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return unlimited;
  }
  return static_cast<std::int64_t>(limit.rlim_cur) -
         kilobytes_in("/proc/self/status", "VmSize:", 0);
}

}  // namespace

std::int64_t available_memory_bytes() {
  return std::max<std::int64_t>(0,
                                std::min({kilobytes_in("/proc/meminfo", "MemAvailable:", unlimited),
                                          left_in_control_group(), left_of_address_space()}));
}

}  // namespace crossover
