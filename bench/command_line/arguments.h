// SPDX-License-Identifier: Apache-2.0
// The command line of bench, read and checked before anything is measured.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "command_line/axes.h"
#include "command_line/choices.h"
#include "command_line/flag.h"
#include "command_line/networks.h"
#include "command_line/sweeps.h"
#include "crossover/catalogue.h"

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

/// Whether rows are measured on a GPU: where there is one, necessarily, or not at all.
enum class CudaUse { automatic, on, off };

/// Which two sides are told apart more closely after a sweep (refine/contest.h); automatic: where a
/// whole sweep is measured those that it is about.
enum class Refine { automatic, off, threads, device, execution, program, command };

struct Arguments {
  Action action = Action::measure;
  Sweep sweep;
  std::vector<Task> tasks;            ///< the networks to measure, changes by flags included;
  std::vector<Task> minibatch_tasks;  ///< those of the family Minibatch
  std::vector<OwnLadder> ladders;     ///< of --network and --scale
  Choices choices;                    ///< of the axes; what follows from them:
  std::vector<std::string> families;  ///< to measure
  std::vector<Precision> precisions;
  std::vector<std::int64_t> batches;  ///< empty: each network's own
  std::vector<int> threads;           ///< empty: 1, 2, 4 ... up to the cores
  std::vector<int> ranks;             ///< of rows that train
  bool mixed = false;                 ///< ranks may be on different processors
  std::vector<std::int64_t> buckets;  ///< of rows of several ranks, in bytes
  DeviceModes cpu_modes, gpu_modes;
  std::vector<std::int64_t> accumulate;  ///< of epochs
  bool loss_every_step = false;
  CudaUse cuda = CudaUse::automatic;
  std::optional<std::string> data;  ///< the user's CSV file
  std::optional<std::string> out;   ///< the result file
  bool resume = false;              ///< go on with the run whose rows are in it
  std::optional<double> budget_seconds;
  std::vector<std::string> peers;  ///< the commands of programs that take turns with the rows
  bool in_process = false;         ///< measure without a child
  double patience_seconds = 30;    ///< with a row that makes no progress (run/sampler.h)
  Refine refine = Refine::automatic;
  std::optional<std::int64_t> memory_limit_bytes;
  std::optional<std::int64_t> planned_memory_bytes;  ///< rows/require_memory.h
  std::vector<std::string> passed_on;  ///< to Google Benchmark, without the program's name
};

/// The batch sizes of the command line, or `own`.
std::vector<std::int64_t> batches_of(const Arguments& arguments, std::int64_t own);

/// The network of that name as the command line trains it: one that it asks for, or another size of
/// a ladder of which it asks for one. `of_steps`: by rows of single steps. None otherwise.
std::optional<Task> find_task(const Arguments& arguments, const std::string& model,
                              bool of_steps = false,
                              const std::vector<Family>& networks = catalogue());

/// Whether the command line has that flag of Google Benchmark's.
bool is_given(const Arguments& arguments, const std::string& flag);

/// Throws UsageError.
Arguments parse(const std::vector<std::string>& arguments);

/// The help text.
std::string help();

}  // namespace crossover::bench
