// SPDX-License-Identifier: Apache-2.0
// The command line of bench, read and checked before anything is measured.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "crossover/backend.h"
#include "crossover/catalogue.h"

namespace crossover::bench {

/// A command line that can't be carried out; what() is one sentence. Exit code 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class Action { measure, plan, help, machine, commit, models, cost };

/// Whether rows are measured on a GPU: where there is one, necessarily, or not at all.
enum class CudaUse { automatic, on, off };

/// How a GPU executes an epoch and where its data lies, as one curve of the chart.
struct GpuMode {
  Execution execution = Execution::eager;
  Placement placement = Placement::resident;
};

/// All ways that differ: a whole epoch is one graph only where nothing is copied or read in it.
std::vector<GpuMode> every_gpu_mode(bool loss_every_step);

/// How much is measured where no flag says otherwise.
struct Sweep {
  std::string name;
  std::vector<std::string> models;
  std::vector<GpuMode> gpu_modes;
  int repetitions = 0;
  double min_time_seconds = 0;  ///< of one repetition
  std::vector<Precision> precisions{Precision::f32};
  bool by_worth = false;  ///< rows in the order of what they are worth, on one thread and all cores
};

struct Arguments {
  Action action = Action::measure;
  Sweep sweep;
  std::vector<Task> tasks;            ///< the networks to measure, changes by flags included
  std::vector<std::int64_t> batches;  ///< empty: each network's own
  std::vector<int> threads;           ///< empty: 1, 2, 4 ... up to the cores
  std::vector<std::string> families;  ///< to measure, in this order
  std::vector<Precision> precisions;
  std::vector<GpuMode> gpu_modes;
  std::vector<Execution> executions;  ///< that the command line names; empty: none
  std::vector<ProductChoice> products{ProductChoice::heuristic};
  bool loss_every_step = false;
  CudaUse cuda = CudaUse::automatic;
  std::int64_t accumulate = 1;
  std::optional<std::string> data;  ///< the user's CSV file
  std::optional<std::string> out;   ///< the result file
  std::optional<std::int64_t> memory_limit_bytes;
  std::vector<std::string> passed_on;  ///< to Google Benchmark, without the program's name
};

/// "a,b" -> {"a", "b"}; an empty text is one empty part.
std::vector<std::string> split(const std::string& text);

/// The whole text as an int, std::int64_t or double within the bounds; UsageError that names the
/// flag if not.
template <class Number>
Number parse_number(const std::string& flag, const std::string& text, Number least, Number most);

/// Throws UsageError.
Arguments parse(const std::vector<std::string>& arguments);

/// As in rows' names: "graph-epoch", "pinned-async".
std::string to_string(Execution execution);
std::string to_string(Placement placement);
std::string to_string(ProductChoice products);

/// The help text of our flags; Google Benchmark's own follow it.
std::string help();

}  // namespace crossover::bench
