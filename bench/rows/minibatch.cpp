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

void register_minibatches(const Arguments& arguments, Devices& devices, Rows& rows) {
  register_training(arguments, Iteration::step, devices, rows,
                    {.derive = derive_step,
                     .count = count,
                     .repetitions = arguments.sweep.minibatch_repetitions});
}

}  // namespace crossover::bench
