// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "crossover/control_group.h"
#include "crossover/memory.h"

namespace crossover {
namespace {

constexpr std::int64_t unlimited = ControlGroup::unlimited;

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

std::int64_t address_space() {
  rlimit limit{};
  const bool is_limited = getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return is_limited ? static_cast<std::int64_t>(limit.rlim_cur) : unlimited;
}

std::int64_t left_of_address_space() {
  const std::int64_t limit = address_space();
  return limit == unlimited ? unlimited : limit - kilobytes_in("/proc/self/status", "VmSize:", 0);
}

}  // namespace

std::int64_t available_memory_bytes() {
  return std::max<std::int64_t>(
      0, std::min({kilobytes_in("/proc/meminfo", "MemAvailable:", unlimited),
                   control_group().memory_left_bytes, left_of_address_space()}));
}

std::int64_t total_memory_bytes() {
  return std::min({std::int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGE_SIZE),
                   control_group().memory_bytes, address_space()});
}

}  // namespace crossover
