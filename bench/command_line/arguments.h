// SPDX-License-Identifier: Apache-2.0
// The command line of bench, read and checked before anything is measured.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "axes/axes.h"
#include "axes/flag.h"
#include "command_line/choices.h"
#include "command_line/networks.h"
#include "command_line/sweeps.h"
#include "crossover/backends.h"
#include "crossover/catalogue.h"
#include "run/options.h"

namespace crossover::bench {

enum class Action {
  measure,
  plan,
  check,
  context,
  help,
  machine,
  commit,
  version,
  models,
  describe,
  network_schema,
  cost,
  worker
};

/// Whether rows are measured on a kind of device: where there is one, necessarily, or not at all.
enum class DeviceUse { automatic, on, off };
inline constexpr std::initializer_list<std::pair<const char*, DeviceUse>> named_device_uses{
    {"auto", DeviceUse::automatic}, {"on", DeviceUse::on}, {"off", DeviceUse::off}};

/// By the name of its backend; automatic of one that is not there.
using DeviceUses = std::map<std::string, DeviceUse>;
DeviceUse use_of(const DeviceUses& uses, const BackendKind& kind);

/// What a run is told, and which rows it has.
struct Arguments : RunOptions {
  Action action = Action::measure;
  Sweep sweep;
  std::vector<Task> tasks;            ///< the networks to measure, changes by flags included;
  std::vector<Task> minibatch_tasks;  ///< those of the family Minibatch
  std::vector<Task> forward_tasks;    ///< those of the family Forward
  std::vector<OwnLadder> ladders;     ///< of --network and --scale
  Choices choices;                    ///< of the axes; what follows from them:
  std::vector<RowFamily> families;    ///< to measure
  std::vector<Precision> precisions;
  std::vector<std::int64_t> batches;  ///< empty: each network's own
  std::vector<int> threads;           ///< empty: 1, 2, 4 ... up to the cores
  std::vector<int> ranks;             ///< of rows that train
  std::vector<std::int64_t> buckets;  ///< of rows of several ranks, in bytes
  DeviceModes cpu_modes, gpu_modes;
  [[nodiscard]] const DeviceModes& modes_of(AxisDevices device) const {
    return device == AxisDevices::cpu ? cpu_modes : gpu_modes;
  }
  std::vector<RowSpec> forward_gpu_modes;
  std::vector<std::int64_t> accumulate;  ///< of epochs
  std::vector<std::int64_t> copies;      ///< of epochs
  bool loss_every_step = false;
  DeviceUses uses;                  ///< of all kinds but the CPU
  std::optional<std::string> data;  ///< the user's CSV file
  std::vector<std::string> peers;   ///< the commands of programs that take turns with the rows
  bool mixed = false;               ///< ranks may be on different processors
  std::optional<std::int64_t> memory_limit_bytes;
  std::optional<std::int64_t> planned_memory_bytes;  ///< families/device.h
  // Flags that Google Benchmark has, too:
  std::string filter;  ///< selected() has its meaning; empty: all rows
  std::optional<double> min_time_seconds;
  bool lists_only = false;
  std::map<std::string, std::string> more_context;  ///< of the result file
  std::vector<std::string> passed_on;               ///< to it: those that it carries out itself
};

/// The batch sizes of the command line, or `own`.
std::vector<std::int64_t> batches_of(const Arguments& arguments, std::int64_t own);

/// The network of that name as the command line trains it: one that it asks for, or another size of
/// a ladder of which it asks for one. `of_steps`: by rows of single steps. None otherwise.
std::optional<Task> find_task(const Arguments& arguments, const std::string& model,
                              bool of_steps = false,
                              const std::vector<Family>& networks = catalogue());

/// Throws UsageError.
Arguments parse(const std::vector<std::string>& arguments);

/// The help text.
std::string help();

// ---- Google Benchmark's part of the command line: what its flags mean for rows, and what it is
// told.

/// All that it has: those that do here what they do there, or say why bench does not.
std::vector<Flag> benchmark_flags(Arguments& to);

/// Google Benchmark takes flags from variables as well: BENCHMARK_FILTER=x is --benchmark_filter=x.
/// Returns them as arguments and removes the variables, so that they go the way of all others.
std::vector<std::string> take_flags_from_environment();

}  // namespace crossover::bench
