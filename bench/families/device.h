// SPDX-License-Identifier: Apache-2.0
// The devices as the families find them, and how rows use them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "command_line/arguments.h"
#include "crossover/backend.h"
#include "crossover/backends.h"
#include "rows/devices.h"
#include "rows/row.h"

namespace crossover::bench {

/// `uses`: where none is required; who requires one looks for it. `ranks`: that this process is one
/// of; where they can't have a device each, its rows are skipped with the reason.
Devices find_devices(const DeviceUses& uses = {}, Ranks* ranks = nullptr);

/// One that is not here: for a plan of what would be measured on it.
Device planned_device(const BackendKind& kind);

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

/// The device that a row names. std::out_of_range where it names none, or one that is not here.
Device& device_of(const RowSpec& row, Devices& devices);

/// What a row says of its device, and of how to use it.
Target target_of(const RowSpec& row, Devices& devices);

/// Whose warnings are its target's.
Row row_on(const Target& target);

/// The ways of a device to run.
using ModesOf = std::function<std::vector<RowSpec>(const Device& device)>;

/// A row for each mode of each device, where it has threads with each number of them.
std::vector<RowSpec> on_devices(const RowSpec& what, const Devices& devices,
                                const std::vector<int>& threads, const ModesOf& modes_of);

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

// ---- Devices that this process plans for without touching them: a worker has them.

/// What a worker says of all but its CPU: `devices` and, of the other kinds, why they are
/// `missing`.
nlohmann::ordered_json description_json(const Devices& devices);

/// The CPU, and the devices that a worker described.
Devices described_devices(const nlohmann::ordered_json& description);

}  // namespace crossover::bench
