// SPDX-License-Identifier: Apache-2.0
#include "file/context.h"

#include <benchmark/benchmark.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string_view>
#include <vector>

#include "axes/axes.h"
#include "axes/flag.h"
#include "build_info.h"
#include "crossover/fingerprint.h"
#include "crossover/machine.h"
#include "file/built_from.h"
#include "file/result_file.h"
#include "rows/counters.h"
#include "rows/devices.h"

namespace crossover::bench {
namespace {

using Json = nlohmann::ordered_json;

/// Of a list of paths, as LD_PRELOAD is one.
std::string without_folders_each(std::string paths) {
  std::ranges::replace(paths, ':', ' ');
  std::istringstream parts(paths);
  std::vector<std::string> names;
  for (std::string part; parts >> part;) {
    names.push_back(without_folders(part));
  }
  return join(names, ":");
}

/// The variables that change how OpenMP, oneDNN, MKL, CUDA and its libraries run, or whose code
/// runs in their place.
Json environment_json() {
  Json variables = Json::object();
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::size_t equals = text.find('=');
    // Of CUDA's own, those that tell where it is installed are left out.
    for (const char* prefix :
         {"OMP_", "GOMP_", "KMP_", "DNNL_", "ONEDNN_", "MKL_", "LD_PRELOAD", "CUDA_VISIBLE_DEVICES",
          "CUDA_DEVICE_", "CUDA_LAUNCH_BLOCKING", "CUDA_MODULE_", "CUDA_FORCE_", "CUDA_DISABLE_",
          "CUBLAS", "CUDNN_", "NCCL_", "NVIDIA_TF32_", "MALLOC_", "GLIBC_TUNABLES"}) {
      if (text.starts_with(prefix) && equals != std::string::npos) {
        const std::string value = text.substr(equals + 1);
        variables[text.substr(0, equals)] =
            text.starts_with("LD_PRELOAD") ? without_folders_each(value) : value;
      }
    }
  }
  return variables;
}

Json caches_json(const benchmark::CPUInfo& cpu) {
  Json caches = Json::array();
  for (const auto& cache : cpu.caches) {
    caches.push_back({{"type", cache.type},
                      {"level", cache.level},
                      {"size", cache.size},
                      {"num_sharing", cache.num_sharing}});
  }
  return caches;
}

constexpr const char* networks = "--network=";

std::string networks_without_folders(const std::string& word) {
  std::vector<std::string> files = split(word.substr(std::string_view(networks).size()));
  std::ranges::transform(files, files.begin(), without_folders);
  return networks + join(files, ",");
}

/// Its flags say which of its rows; the rest is of this machine. A program of this project is told
/// by its name: "--with-peers=pytorch" of "python -m peers.pytorch"; networks of its own by theirs.
/// The commands of ./run two stand among the peers.
void add_peer(const std::string& command, Json& words) {
  const std::string whole = "crossover_bench.";
  const std::string package = "peers.";
  const std::string own = "peers.pytorch.own";
  std::string said = "--with-peers";
  Json flags = Json::array();
  std::istringstream text(command);
  for (std::string part; text >> part;) {
    if (part.starts_with(whole)) {
      part.erase(0, whole.size());
    }
    if (part == own || part.ends_with("peers/command.py")) {
      said.clear();
    } else if (part.starts_with(package)) {
      said += "=" + part.substr(package.size());
    } else if (part.starts_with("--") &&
               std::find(words.begin(), words.end(), part) == words.end()) {
      flags.push_back(part.starts_with(networks) ? networks_without_folders(part) : part);
    }
  }
  if (!said.empty()) {
    words.push_back(said);
  }
  words.insert(words.end(), flags.begin(), flags.end());
}

Json command_json(const std::vector<std::string>& command) {
  const std::string peer = "--peer=";
  Json words = Json::array();
  for (const std::string& word : command) {
    const std::size_t path = word.starts_with("--") ? word.find('=') + 1 : 0;
    const bool is_path = words.empty() || word.starts_with("--out=") ||
                         word.starts_with("--data=") || word.starts_with("--benchmark_out=");
    if (word.starts_with("--when-answered=")) {  // which changes nothing that is measured
      continue;
    }
    if (word.starts_with(peer)) {
      add_peer(word.substr(peer.size()), words);
      continue;
    }
    if (word.starts_with(networks)) {
      words.push_back(networks_without_folders(word));
      continue;
    }
    words.push_back(is_path ? word.substr(0, path) + without_folders(word.substr(path)) : word);
  }
  return words;
}

Json libraries_json(const Devices& devices) {
  Json libraries = {{"benchmark", build::benchmark_version}};
  for (const Device& device : devices.all) {
    for (const auto& [library, version] : device.description.libraries) {
      libraries[library] = version;
    }
  }
  return libraries;
}

/// Empty: not known.
std::string commit() {
  const std::string tree = build::tree;
  return tree.substr(0, tree.find('-'));
}

bool is_dirty() { return std::string_view(build::tree).ends_with("-dirty"); }

Json run_configuration_json(const std::vector<std::string>& command, const std::string& sweep,
                            const Effort& effort) {
  return {{"command", command_json(command)},
          {"sweep", sweep},
          {"repetitions", effort.repetitions},
          {"min_time_seconds", effort.min_time_seconds},
          {"environment", environment_json()}};
}

/// By family and device; none where uncommitted changes may have changed the code.
Json code_versions_json() {
  Json versions = Json::object();
  for (const build::CodeVersion& version : build::code_versions) {
    if (!is_dirty()) {
      versions[version.rows] = version.number;
    }
  }
  return versions;
}

/// What is to be known of the keys of rows' configurations, in the order of names.
Json axes_json() {
  Json json = Json::array();
  for (const Axis& axis : axes()) {
    json.push_back({{"key", axis.key}, {"role", to_string(axis.role)}});
    if (!axis.values.empty()) {
      json.back()["values"] = axis.values;
    }
    json.back()["description"] = axis.description;
  }
  return json;
}

}  // namespace

std::string without_folders(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

std::string now_in_utc() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::string text(sizeof "2026-11-21T01:02:03+00:00", '\0');
  text.resize(std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S+00:00", &parts));
  return text;
}

Json machine_json(const Devices& devices) {
  const Machine machine = this_machine();
  const std::vector<const Device*> gpus = devices.gpus();
  const Json gpu = gpus.empty() ? Json(nullptr) : gpus.front()->facts;
  return {{"id", machine.id},
          {"cpu",
           {{"model", machine.cpu_model},
            {"sockets", machine.sockets},
            {"cores", machine.cores},
            {"threads", machine.threads},
            {"quota", machine.quota ? number_json(*machine.quota) : Json(nullptr)},
            {"numa_nodes", machine.numa_nodes},
            {"governor", machine.governor ? Json(*machine.governor) : Json(nullptr)},
            {"turbo", machine.turbo ? Json(*machine.turbo) : Json(nullptr)},
            {"virtual", machine.is_virtual ? Json(*machine.is_virtual) : Json(nullptr)},
            {"simd", machine.simd}}},
          {"memory_bytes", machine.memory_bytes},
          {"gpu", gpu},
          {"gpu_reason", devices.gpu_reason()},
          {"os", machine.os},
          {"kernel", machine.kernel},
          {"wsl_gpu", machine.wsl_gpu ? Json(*machine.wsl_gpu) : Json(nullptr)}};
}

Json software_json(const Devices& devices) {
  Json software = {{"commit", commit()},
                   {"dirty", is_dirty()},
                   {"compiler", build::compiler},
                   {"flags", build::flags},
                   {"build_type", build::build_type},
                   {"libraries", libraries_json(devices)}};
  if (is_dirty() || commit().empty()) {
    software["program"] = fingerprint_of_file("/proc/self/exe");
  }
  return software;
}

std::string fingerprint_of_file(const std::string& path) {
  std::uint64_t state = fingerprint("");
  std::ifstream file(path, std::ios::binary);
  std::array<char, 65536> block{};
  while (file.read(block.data(), block.size()), file.gcount() > 0) {
    state = fingerprint({block.data(), static_cast<std::size_t>(file.gcount())}, state);
  }
  return hexadecimal(state);
}

std::string commit_line() {
  constexpr std::size_t shown = 7;
  const std::string whole = commit();
  return whole.empty() ? "unknown" : whole.substr(0, shown) + (is_dirty() ? "-dirty" : "");
}

Json context_json(const std::vector<std::string>& command, const std::string& sweep,
                  const Effort& effort, const Devices& devices) {
  const benchmark::CPUInfo& cpu = benchmark::CPUInfo::Get();
  return {{"date", now_in_utc()},
          {"executable", "bench"},
          {"num_cpus", cpu.num_cpus},
          {"mhz_per_cpu", std::lround(cpu.cycles_per_second / 1e6)},
          {"cpu_scaling_enabled", cpu.scaling == benchmark::CPUInfo::ENABLED},
          {"caches", caches_json(cpu)},
          {"load_avg", cpu.load_avg},
          {"library_build_type", "release"},
          {"json_schema_version", 1},
          {"crossover",
           {{"schema_version", 2},
            {"complete", false},
            {"machine", machine_json(devices)},
            {"software", software_json(devices)},
            {"code_versions", code_versions_json()},
            {"configuration", run_configuration_json(command, sweep, effort)},
            {"axes", axes_json()},
            {"counters", counters_json()}}}};
}

}  // namespace crossover::bench
