// SPDX-License-Identifier: Apache-2.0
#include "rows/training_row.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "crossover/start.h"
#include "rows/profile_counters.h"
#include "run/spent.h"

namespace crossover::bench {
namespace {

/// Of the time of a row's repetitions, what its profiles may cost.
constexpr double profiled_share = 0.1;

class PreparedTraining : public PreparedBenchmark {
 public:
  PreparedTraining(TrainingProgram made, Result& result)
      : made_(std::move(made)), result_(result), iterations_(result.iterations) {}

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
    timed_seconds_ += timed_seconds;
    made_.require_finite();
    const double affordable = profiled_share * timed_seconds;
    // Of a row that was made again the former profile will do, unless one more costs little.
    const auto of_one = timed_seconds / static_cast<double>(std::max<std::int64_t>(1, iterations_));
    if (profiled_seconds_ < profiled_share * timed_seconds_ &&
        (iterations_ == 0 || of_one < affordable)) {
      profile(affordable);
    }
  }

 private:
  /// Takes the counters of the profile, in about `seconds`. They are taken again after repetitions
  /// because the machine's speed drifts: a profile is only comparable with a time of its own
  /// moment.
  void profile(double seconds) {
    const Instant start = std::chrono::steady_clock::now();
    count_profile(*made_.program, seconds, result_.counters);
    const double seconds_taken = seconds_since(start);
    profiled_seconds_ += seconds_taken;
    result_.profile_seconds += seconds_taken;
  }

  TrainingProgram made_;
  Result& result_;
  std::int64_t iterations_;  ///< of each repetition; 0: not settled when it was made
  Instant started_;          ///< of this repetition
  double timed_seconds_ = 0;
  double profiled_seconds_ = 0;
};

}  // namespace

void register_training(const Arguments& arguments, Iteration iteration, Devices& devices,
                       Rows& rows, const TrainingFamily& family) {
  // Rows of one network share its reference.
  const auto training = std::make_shared<Training>(arguments, iteration);
  for (const TrainingPlan& plan : training->plans()) {
    const Configuration what = training->configuration(plan);
    for (Target target : training->targets(plan, devices)) {
      Row row{.configuration = joined(what, target.configuration),
              .device = target.device,
              .warnings = target.warnings,
              .derive = family.derive};
      if (!is_given(arguments, "--benchmark_repetitions")) {
        row.repetitions = family.repetitions;
      }
      training->expect(row, plan, target);
      TrainingPlan own = trained_in(plan, target.configuration);
      if (target.ranks > 1) {
        own.options.bucket_bytes = target.bucket_bytes;
        target.row = row_name(in_order(row.configuration));
        row.followed = [own, target] { return Training::followed(own, target); };
      }
      row.make = [training, own, target, count = family.count](Result& result) {
        TrainingProgram made = training->prepare(own, target, result);
        count(own, made, result);
        return std::make_unique<PreparedTraining>(std::move(made), result);
      };
      rows.add(std::move(row));
    }
  }
}

void derive_training(benchmark::UserCounters& counters, double seconds, double samples) {
  derive_unattributed(counters, seconds);
  counters["samples_per_second"] = samples / seconds;
  counters["flops_per_second"] = counters["flops"].value / seconds;
}

}  // namespace crossover::bench
