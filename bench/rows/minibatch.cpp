// SPDX-License-Identifier: Apache-2.0
// Family Minibatch: one iteration trains a network on one batch, as the tables of Shi et al. 2016
// count.
#include "rows/families.h"
#include "rows/training_row.h"

namespace crossover::bench {
namespace {

void derive_step(benchmark::UserCounters& counters, double seconds) {
  derive_training(counters, seconds, counters["batch"].value);
  counters["seconds_per_step"] = seconds;
}

void count(const TrainingPlan& /*plan*/, const TrainingProgram& made, Result& result) {
  result.counters["loss_first_step"] = made.first_loss;
  result.counters["peak_bytes"] = static_cast<double>(made.bytes);
  if (result.counters.contains("cpu_threads")) {  // a GPU's library reorders within its own calls
    const Reorders reorders = made.program->facts().reorders;
    result.counters["reorders"] = static_cast<double>(reorders.count);
    result.counters["reorder_bytes"] = static_cast<double>(reorders.bytes);
  }
}

}  // namespace

/// Of large steps, how they are launched, and where their data lies, says little. Each is verified
/// for seconds.
bool is_minibatch_worth_minutes(const Row& row, const std::string& most_threads) {
  if (row.device->is_host) {
    return is_in_f32(row) && value_of(row.configuration, "cpu_threads") == most_threads;
  }
  const std::string& execution = value_of(row.configuration, "execution");
  return (execution == "graph" || (execution == "auto" && is_in_f32(row))) &&
         value_of(row.configuration, "data") == "resident" &&
         value_or_unsaid(row.configuration, "products") == "heuristic";
}

void register_minibatches(const Arguments& arguments, Devices& devices, Rows& rows) {
  register_training(arguments, Iteration::step, devices, rows,
                    {.derive = derive_step,
                     .count = count,
                     .repetitions = arguments.sweep.minibatch_repetitions});
}

}  // namespace crossover::bench
