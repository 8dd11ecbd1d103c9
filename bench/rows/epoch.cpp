// SPDX-License-Identifier: Apache-2.0
// Family Epoch: one iteration trains a network on its whole data set once.
#include "rows/families.h"
#include "rows/training_row.h"

namespace crossover::bench {
namespace {

void derive_epoch(benchmark::UserCounters& counters, double seconds) {
  derive_training(counters, seconds, counters["rows"].value);
  counters["seconds_per_epoch"] = seconds;
}

}  // namespace

/// Other precisions are shown in the way that is fast.
bool is_epoch_worth_minutes(const Row& row, const std::string& /*most_threads*/) {
  return is_in_f32(row) || row.device->is_host ||
         (value_of(row.configuration, "execution") == "graph" &&
          value_of(row.configuration, "data") == "resident" &&
          value_or_unsaid(row.configuration, "products") == "heuristic");
}

void register_epochs(const Arguments& arguments, Devices& devices, Rows& rows) {
  register_training(
      arguments, Iteration::epoch, devices, rows,
      {.derive = derive_epoch,
       .count = [](const TrainingPlan& plan, const TrainingProgram& made, Result& result) {
         result.counters["rows"] = static_cast<double>(plan.options.rows);
         result.counters["steps"] = static_cast<double>(made.steps());
         result.counters["loss_first_epoch"] = made.first_loss;
       }});
}

}  // namespace crossover::bench
