// SPDX-License-Identifier: Apache-2.0
// The devices that rows are measured on, as the families find them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "command_line/arguments.h"
#include "crossover/backend.h"

namespace crossover::bench {

struct Device {
  std::unique_ptr<Backend> backend;
  bool is_host = false;          ///< computes in the host's memory, on threads of this process
  std::int64_t cache_bytes = 0;  ///< of the last level: what fits is not read from memory again
  std::string failure;           ///< why nothing more can be measured on it; empty: it is well
  nlohmann::ordered_json facts;  ///< machine.gpu of a result file; null of the CPU

  [[nodiscard]] std::string name() const { return backend->describe().device; }
};

struct Devices {
  std::vector<Device> all;  ///< the CPU, then GPUs
  std::string gpu_reason;   ///< why there is none; empty where there is one
  Ranks* ranks = nullptr;   ///< that this process is one of; none of a process alone

  [[nodiscard]] Device& cpu() { return all.front(); }
  [[nodiscard]] std::span<Device> gpus() { return std::span(all).subspan(1); }
  [[nodiscard]] std::span<const Device> gpus() const { return std::span(all).subspan(1); }
};

/// Throws UsageError where the command line demands a GPU and there is none. `ranks`: that this
/// process is one of; where they can't have a GPU each, its rows are skipped with the reason.
Devices find_devices(CudaUse use, Ranks* ranks = nullptr);

/// A GPU that is not here: for a plan of what would be measured on one.
Device planned_gpu();

// ---- A device and a way to use it: one side of a comparison.

struct Target {
  Device* device = nullptr;
  int ranks = 1;                  ///< processes that share each batch
  int loader = 0;                 ///< threads that assemble batches while it trains
  std::int64_t bucket_bytes = 0;  ///< of gradients that several ranks sum at once
  Ranks* joined = nullptr;        ///< this process among them; none where it only plans
  CompileOptions options;
  RowSpec row;                             ///< the row, whole
  std::vector<std::string> warnings;       ///< what casts doubt on its figures, a sentence each
  std::map<std::string, double> counters;  ///< that all its rows have: cpu_threads
};

/// The device that a row names; null where it names none, or one that is not here.
Device* find_device(const RowSpec& row, Devices& devices);

/// The same. std::out_of_range where it is not here.
Device& device_of(const RowSpec& row, Devices& devices);

/// What a row says of its device, and of how to use it.
Target target_of(const RowSpec& row, Devices& devices);

/// A row for each mode of a device, on the CPU with each number of threads.
std::vector<RowSpec> on_devices(const RowSpec& what, const Devices& devices,
                                const std::vector<int>& threads,
                                const std::vector<RowSpec>& cpu_modes,
                                const std::vector<RowSpec>& gpu_modes);

/// Processor cores that one process may use, no more than its container's quota gives time of.
int usable_cores();

/// The threads that these cores run at once.
int usable_processors();

/// What the command line says, or those.
std::vector<int> thread_counts(const Arguments& arguments, ThreadCounts which);

/// Sentences on what makes a row of that many threads, of each rank, doubtful; beside them so many
/// load batches.
std::vector<std::string> doubts_about_threads(int threads, int ranks = 1, int loader = 0);

/// A row's warning with --mixed.
inline constexpr const char* ranks_are_mixed =
    "ranks may be on different processors (--mixed): the slowest decides on the time";

/// The same of several ranks on GPUs.
std::vector<std::string> doubts_about_gpus();

// ---- Rows that the host's memory does not hold are skipped before they take it.

/// Throws OutOfMemory where `bytes` are more than the command line or the machine leaves this
/// process. `purpose`: "to train and verify disc-2".
void require_memory(const Arguments& arguments, double bytes, const std::string& purpose);

/// By how much memory sizes are chosen that depend on it: the same in all processes of a run, and
/// at any moment. Without --planned-memory half of all that there is, at least.
std::int64_t planned_memory_bytes(const Arguments& arguments);

// ---- A GPU that this process plans for without touching it: a worker has it.

/// What a worker says of its devices: `gpu`, an object or null, and `gpu_reason`.
nlohmann::ordered_json description_json(const Devices& devices);

/// The CPU, and the GPU that a worker described.
Devices described_devices(const nlohmann::ordered_json& description);

}  // namespace crossover::bench
