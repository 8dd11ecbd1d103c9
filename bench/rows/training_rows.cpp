// SPDX-License-Identifier: Apache-2.0
// Rows of networks. Family Epoch: one iteration trains it on its whole data set once. Family
// Minibatch: on one batch, as the tables of Shi et al. 2016 count. Of the family Forward, how they
// are planned: forward.cpp makes them.
#include "rows/training.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "base/spent.h"
#include "crossover/start.h"
#include "rows/counters.h"
#include "rows/families.h"

namespace crossover::bench {
namespace {

class PreparedTraining : public PreparedBenchmark {
 public:
  PreparedTraining(TrainingProgram made, Result& result)
      : made_(std::move(made)), profile_(result) {}

  void start() override {
    restart(*made_.program, made_.workload);
    started_ = std::chrono::steady_clock::now();
  }

  void expect(std::int64_t iterations) override { made_.program->expect_passes(iterations); }

  std::vector<double> seconds_of_ranks() override { return made_.program->seconds_of_passes(); }

  void run() override {
    made_.program->enqueue(0, made_.steps());
    made_.program->wait();
  }

  void check() override {
    const double timed_seconds = seconds_since(started_);
    made_.require_finite();
    profile_.take(*made_.program, timed_seconds);
  }

 private:
  TrainingProgram made_;
  RowProfile profile_;
  Instant started_;  ///< of this repetition
};

/// A large batch of a large network in use says what its training says, and takes minutes to
/// verify: only who asks for the batch gets it.
constexpr double most_seconds_unasked = 20;

/// Each network on each target.
void register_networks(const Arguments& arguments, Trains trains, Devices& devices, Rows& rows) {
  Training training(arguments, trains);
  for (const TrainingPlan& plan : training.plans()) {
    for (const Configuration& configuration : training.rows_of(plan, devices)) {
      const Target target = target_of(configuration, devices);
      Row row = row_on(target);
      if (target.ranks > 1 && arguments.mixed) {
        row.warnings.emplace_back(ranks_are_mixed);
      }
      if (!arguments.repetitions) {
        row.repetitions = arguments.sweep.repetitions_of(trains);
      }
      training.expect(row, plan, target);
      if (trains != Trains::forward_passes || !arguments.batches.empty() ||
          row.expected.all <= most_seconds_unasked) {
        rows.add(std::move(row));
      }
    }
  }
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
  register_networks(arguments, Trains::epochs, devices, rows);
}

std::unique_ptr<PreparedBenchmark> make_training(RowContext& context, const Configuration& row,
                                                 Result& result) {
  Training& training = context.training_of(row);
  const TrainingPlan plan = training.plan_of(row);
  TrainingProgram made = training.prepare(plan, target_of(row, context.devices), result);
  const ProgramFacts& facts = made.program->facts();
  std::map<std::string, double>& counters = result.counters;
  if (find_family(value_of(row, "family")).trains == Trains::epochs) {
    counters["rows"] = static_cast<double>(plan.options.rows);
    counters["steps"] =
        static_cast<double>(made.steps()) / static_cast<double>(plan.options.copies);
    counters["loss_first_epoch"] = made.first_loss;
  } else {
    counters["loss_first_step"] = made.first_loss;
    counters["peak_bytes"] = static_cast<double>(facts.bytes);
    if (counters.contains("cpu_threads")) {  // a GPU's library reorders within its own calls
      counters["reorders"] = static_cast<double>(facts.reorders.count);
      counters["reorder_bytes"] = static_cast<double>(facts.reorders.bytes);
    }
  }
  return std::make_unique<PreparedTraining>(std::move(made), result);
}

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
  register_networks(arguments, Trains::steps, devices, rows);
}

void register_passes(const Arguments& arguments, Devices& devices, Rows& rows) {
  register_networks(arguments, Trains::forward_passes, devices, rows);
}

}  // namespace crossover::bench
