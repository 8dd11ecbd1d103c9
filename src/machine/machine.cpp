// SPDX-License-Identifier: Apache-2.0
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "crossover/machine.h"
#include "crossover/regular_expression.h"

namespace crossover {

// ---- The machine

namespace {

std::optional<std::string> first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) {
    return std::nullopt;
  }
  return line;
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The values behind "key : value" or "key=value" in lines of that form, without quotes.
std::vector<std::string> values_of(const std::string& text, const std::string& key) {
  std::vector<std::string> values;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.compare(0, key.size(), key) != 0) {
      continue;
    }
    const std::size_t value = line.find_first_not_of(" \t:=\"", key.size());
    if (value != std::string::npos) {
      values.push_back(line.substr(value, line.find_last_not_of(" \t\"") - value + 1));
    }
  }
  return values;
}

/// The first of them, or "".
std::string value_of(const std::string& text, const std::string& key) {
  const std::vector<std::string> values = values_of(text, key);
  return values.empty() ? "" : values.front();
}

/// The name of a core by the identification register that Linux prints: "CPU implementer" and "CPU
/// part". Of others the numbers stand for it.
std::string arm_core(const std::string& implementer, const std::string& part) {
  // As lscpu of util-linux and Linux (arch/arm64/include/asm/cputype.h) name them.
  static const std::map<std::pair<std::string, std::string>, const char*> names{
      {{"0x41", "0xd03"}, "Cortex-A53"},    {{"0x41", "0xd05"}, "Cortex-A55"},
      {{"0x41", "0xd46"}, "Cortex-A510"},   {{"0x41", "0xd80"}, "Cortex-A520"},
      {{"0x41", "0xd07"}, "Cortex-A57"},    {{"0x41", "0xd08"}, "Cortex-A72"},
      {{"0x41", "0xd0b"}, "Cortex-A76"},    {{"0x41", "0xd41"}, "Cortex-A78"},
      {{"0x41", "0xd42"}, "Cortex-A78AE"},  {{"0x41", "0xd81"}, "Cortex-A720"},
      {{"0x41", "0xd87"}, "Cortex-A725"},   {{"0x41", "0xd44"}, "Cortex-X1"},
      {{"0x41", "0xd82"}, "Cortex-X4"},     {{"0x41", "0xd85"}, "Cortex-X925"},
      {{"0x41", "0xd0c"}, "Neoverse-N1"},   {{"0x41", "0xd49"}, "Neoverse-N2"},
      {{"0x41", "0xd8e"}, "Neoverse-N3"},   {{"0x41", "0xd40"}, "Neoverse-V1"},
      {{"0x41", "0xd4f"}, "Neoverse-V2"},   {{"0x41", "0xd84"}, "Neoverse-V3"},
      {{"0x41", "0xd83"}, "Neoverse-V3AE"}, {{"0x43", "0x0af"}, "ThunderX2"},
      {{"0x46", "0x001"}, "A64FX"},         {{"0x48", "0xd01"}, "TaiShan-v110"},
      {{"0x4e", "0x004"}, "Carmel"},        {{"0x51", "0x001"}, "Oryon"},
      {{"0xc0", "0xac3"}, "Ampere-1"},      {{"0xc0", "0xac4"}, "Ampere-1a"}};
  const auto known = names.find({implementer, part});
  return known != names.end() ? known->second : "ARM " + implementer + " " + part;
}

// Those that this process may use, before a library binds its first thread to one of them, as
// OpenMP's does while it is loaded (OMP_PROC_BIND, OMP_PLACES, GOMP_CPU_AFFINITY).
// One cpu_set_t has 1,024 of them, and the call fails where the kernel may have more.
constexpr int most_processors = 1 << 16;
using ProcessorSets = std::array<cpu_set_t, most_processors / CPU_SETSIZE>;
ProcessorSets processors_at_start;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

/// Before constructors of libraries, sanitizers' too: only a system call.
__attribute__((no_sanitize("address", "undefined"))) void note_processors(int /*argc*/,
                                                                          char** /*argv*/,
                                                                          char** /*variables*/) {
  syscall(SYS_sched_getaffinity, 0, sizeof processors_at_start, &processors_at_start);
}

using Initializer = void (*)(int, char**, char**);
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
__attribute__((section(".preinit_array"), used)) Initializer note_first = note_processors;

std::vector<int> usable_processors() {
  std::vector<int> processors;
  for (int i = 0; i < most_processors; ++i) {
    if (CPU_ISSET_S(i, sizeof processors_at_start, processors_at_start.data())) {
      processors.push_back(i);
    }
  }
  return processors;
}

void read_topology(Machine& machine) {
  const std::vector<int> processors = usable_processors();
  std::set<std::string> sockets;
  std::set<std::pair<std::string, std::string>> cores;
  for (const int processor : processors) {
    const std::string folder =
        "/sys/devices/system/cpu/cpu" + std::to_string(processor) + "/topology/";
    const auto socket = first_line(folder + "physical_package_id");
    const auto core = first_line(folder + "core_id");
    if (socket && core) {
      sockets.insert(*socket);
      cores.emplace(*socket, *core);
    }
  }
  machine.threads = std::max<int>(1, static_cast<int>(processors.size()));
  machine.cores = cores.empty() ? machine.threads : static_cast<int>(cores.size());
  machine.sockets = std::max<int>(1, static_cast<int>(sockets.size()));

  std::error_code ignored;
  const RegularExpression node("^node[0-9]+$");
  int nodes = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator("/sys/devices/system/node", ignored)) {
    nodes += node.is_in(entry.path().filename().string()) ? 1 : 0;
  }
  machine.numa_nodes = std::max(1, nodes);
}

std::string widest_simd() {
#if defined(__aarch64__)
  return "neon";
#else
  std::istringstream words(value_of(text_of("/proc/cpuinfo"), "flags"));
  const std::set<std::string> flags{std::istream_iterator<std::string>(words), {}};
  const std::initializer_list<std::pair<const char*, const char*>> widest_first{
      {"amx_tile", "amx"}, {"avx512f", "avx512"}, {"avx2", "avx2"}, {"avx", "avx"}};
  for (const auto& [flag, simd] : widest_first) {
    if (flags.contains(flag)) {
      return simd;
    }
  }
  return "sse2";
#endif
}

}  // namespace

void unbind_processors() {
  if (CPU_COUNT_S(sizeof processors_at_start, processors_at_start.data()) > 0) {
    sched_setaffinity(0, sizeof processors_at_start, processors_at_start.data());
  }
}

std::string processor_name(const std::string& cpuinfo) {
  if (std::string name = value_of(cpuinfo, "model name"); !name.empty()) {
    return name;
  }
  const std::vector<std::string> implementers = values_of(cpuinfo, "CPU implementer");
  const std::vector<std::string> parts = values_of(cpuinfo, "CPU part");
  std::map<std::string, int> cores;
  for (std::size_t i = 0; i < std::min(implementers.size(), parts.size()); ++i) {
    ++cores[arm_core(implementers[i], parts[i])];
  }
  std::string all;
  for (const auto& [core, count] : cores) {
    all += all.empty() ? "" : " + ";
    all += cores.size() > 1 ? std::to_string(count) + " " + core : core;
  }
  return all;
}

std::string processor_slug(const std::string& model) {
  const auto without = [](const std::string& text, const char* pattern) {
    return RegularExpression(pattern, RegularExpression::Case::ignored).replaced(text, " ");
  };
  std::string text = without(model, "@.*");
  text = without(text, "\\((r|tm|c)\\)");
  text = without(text, "[0-9]+(-|\\s)core");
  text = without(text, "[0-9.]+ ?[gm]hz");
  text = without(text, "\\b(cpu|processor|with radeon.*)\\b");
  std::string slug;
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      slug += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (!slug.empty() && slug.back() != '-') {
      slug += '-';
    }
  }
  while (!slug.empty() && slug.back() == '-') {
    slug.pop_back();
  }
  return slug.empty() ? "unknown" : slug;
}

std::string machine_id(const std::string& model, const std::string& family,
                       const std::string& number, int cores) {
  std::string id = processor_slug(model);
  const bool hides_its_number =
      std::none_of(id.begin(), id.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  if (hides_its_number && !family.empty() && !number.empty()) {
    id.append("-").append(processor_slug(family + " " + number));
  }
  return id + "-" + std::to_string(cores) + "c";
}

std::optional<bool> turbo(const std::filesystem::path& root) {
  const std::filesystem::path folder = root / "sys/devices/system/cpu";
  if (const auto boost = first_line(folder / "cpufreq/boost")) {
    return *boost == "1";
  }
  if (const auto off = first_line(folder / "intel_pstate/no_turbo")) {
    return *off == "0";
  }
  return std::nullopt;
}

std::optional<bool> is_virtual(const std::string& cpuinfo) {
  std::istringstream flags(value_of(cpuinfo, "flags"));
  const std::set<std::string> all{std::istream_iterator<std::string>(flags), {}};
  return all.empty() ? std::nullopt : std::optional(all.contains("hypervisor"));
}

std::optional<bool> wsl_gpu(const std::filesystem::path& root) {
  const RegularExpression of_wsl("microsoft|wsl", RegularExpression::Case::ignored);
  const auto kernel = first_line(root / "proc/sys/kernel/osrelease");
  if (!kernel || !of_wsl.is_in(*kernel)) {
    return std::nullopt;
  }
  return std::filesystem::exists(root / "dev/dxg");
}

Machine this_machine() {
  Machine machine;
  const std::string cpuinfo = text_of("/proc/cpuinfo");
  machine.cpu_model = processor_name(cpuinfo);
  if (machine.cpu_model.empty()) {
    machine.cpu_model = first_line("/sys/firmware/devicetree/base/model").value_or("");
    std::erase(machine.cpu_model, '\0');
  }
  utsname system{};
  if (uname(&system) == 0) {
    machine.kernel = system.release;
    if (machine.cpu_model.empty()) {
      machine.cpu_model = system.machine;
    }
  }
  read_topology(machine);
  machine.quota = control_group().quota;
  machine.turbo = turbo();
  machine.is_virtual = is_virtual(cpuinfo);
  machine.wsl_gpu = wsl_gpu();
  machine.governor = first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  machine.simd = widest_simd();
  machine.memory_bytes = std::int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGE_SIZE);
  machine.os = value_of(text_of("/etc/os-release"), "PRETTY_NAME");
  machine.id = machine_id(machine.cpu_model, value_of(cpuinfo, "cpu family"),
                          value_of(cpuinfo, "model\t"), machine.cores);
  return machine;
}

// ---- What a process may use of it, and its memory.

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
