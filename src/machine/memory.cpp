// SPDX-License-Identifier: Apache-2.0
// What a process may use of the machine, and its memory.
#include "crossover/memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "crossover/machine.h"

namespace crossover {

namespace {

namespace fs = std::filesystem;

/// None: there is none, or a word in its place, as "max" is where there is no limit.
std::optional<std::int64_t> number_in(const fs::path& path) {
  std::ifstream file(path);
  std::int64_t value = 0;
  return file >> value ? std::optional(value) : std::nullopt;
}

/// Behind that word of a file of words and numbers.
std::int64_t number_behind(const fs::path& path, const std::string& key) {
  std::ifstream file(path);
  std::string word;
  for (std::int64_t value = 0; file >> word >> value;) {
    if (word == key) {
      return value;
    }
  }
  return 0;
}

struct MemoryFiles {
  const char* limit;
  const char* used;
  const char* given_back_first;  ///< in memory.stat
};

/// v1 says the largest number of whole pages where there is no limit.
void take_memory(const fs::path& group, const MemoryFiles& files, ControlGroup& all) {
  constexpr std::int64_t beyond_any_memory = std::int64_t{1} << 60;
  const std::optional<std::int64_t> limit = number_in(group / files.limit);
  if (limit && *limit >= 0 && *limit < beyond_any_memory) {
    const std::int64_t used = number_in(group / files.used).value_or(0) -
                              number_behind(group / "memory.stat", files.given_back_first);
    all.memory_bytes = std::min(all.memory_bytes, *limit);
    all.memory_left_bytes =
        std::min(all.memory_left_bytes, *limit - std::max<std::int64_t>(0, used));
  }
}

void take_quota(std::optional<std::int64_t> quota, std::optional<std::int64_t> period,
                ControlGroup& all) {
  if (quota && period && *quota > 0 && *period > 0) {
    const double own = static_cast<double>(*quota) / static_cast<double>(*period);
    all.quota = std::min(all.quota.value_or(own), own);
  }
}

void take_v2(const fs::path& group, ControlGroup& all) {
  take_memory(group, {"memory.max", "memory.current", "inactive_file"}, all);
  std::ifstream file(group / "cpu.max");
  std::int64_t quota = 0;
  std::int64_t period = 0;
  if (file >> quota >> period) {
    take_quota(quota, period, all);
  }
}

void take_v1(const fs::path& group, ControlGroup& all) {
  take_memory(group, {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"},
              all);
  take_quota(number_in(group / "cpu.cfs_quota_us"), number_in(group / "cpu.cfs_period_us"), all);
}

/// The group's folder below where its hierarchy is mounted, those around it, and the mount itself,
/// which in a container is its own group. A path that leads out of what is mounted leads nowhere.
std::vector<fs::path> groups_around(const fs::path& mount, const fs::path& path) {
  std::vector<fs::path> groups{mount};
  for (const fs::path& part : path.relative_path()) {
    if (part == "..") {
      return {mount};
    }
    groups.push_back(groups.back() / part);
  }
  return groups;
}

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

/// Each line is "number:controllers:path"; v2's has no controllers.
ControlGroup control_group(const fs::path& root) {
  ControlGroup all;
  const fs::path mounts = root / "sys/fs/cgroup";
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    std::istringstream parts(line);
    std::string number;
    std::string controllers;
    std::string path;
    std::getline(parts, number, ':');
    std::getline(parts, controllers, ':');
    std::getline(parts, path);
    if (controllers.empty()) {
      for (const fs::path& mount : {mounts, mounts / "unified"}) {
        for (const fs::path& group : groups_around(mount, path)) {
          take_v2(group, all);
        }
      }
      continue;
    }
    std::vector<fs::path> own{mounts / controllers};
    std::istringstream names(controllers);
    for (std::string name; std::getline(names, name, ',');) {
      own.push_back(mounts / name);
    }
    for (const fs::path& mount : own) {
      for (const fs::path& group : groups_around(mount, path)) {
        take_v1(group, all);
      }
    }
  }
  return all;
}

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
