// SPDX-License-Identifier: Apache-2.0
// Family Epoch: one iteration trains a network on its whole data set once.
#include <algorithm>
#include <chrono>
#include <memory>

#include "crossover/start.h"
#include "families.h"
#include "profile_counters.h"
#include "training.h"

namespace crossover::bench {
namespace {

/// Of the time of a row's repetitions, what its profiles may cost.
constexpr double profiled_share = 0.2;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

class PreparedEpoch : public PreparedBenchmark {
 public:
  PreparedEpoch(TrainingProgram made, Result& result) : made_(std::move(made)), result_(result) {
    profile(0);
  }

  void start() override {
    restart(*made_.program, made_.workload);
    started_ = std::chrono::steady_clock::now();
  }

  void run() override {
    made_.program->enqueue(0, made_.steps());
    made_.program->wait();
  }

  void check() override {
    const double timed_seconds = seconds_since(started_);
    timed_seconds_ += timed_seconds;
    made_.require_finite();
    if (profiled_seconds_ < profiled_share * timed_seconds_) {
      profile(profiled_share * timed_seconds);
    }
  }

 private:
  /// Takes the counters of the profile, in about `seconds`. They are taken again after repetitions
  /// because the machine's speed drifts: a profile is only comparable with a time of its own
  /// moment.
  void profile(double seconds) {
    const auto start = std::chrono::steady_clock::now();
    count_profile(*made_.program, seconds, result_.counters);
    profiled_seconds_ += seconds_since(start);
  }

  TrainingProgram made_;
  Result& result_;
  std::chrono::steady_clock::time_point started_;  ///< of this repetition
  double timed_seconds_ = 0;
  double profiled_seconds_ = 0;
};

void derive(benchmark::UserCounters& counters, double seconds) {
  derive_unattributed(counters, seconds);
  counters["seconds_per_epoch"] = seconds;
  counters["samples_per_second"] = counters["rows"].value / seconds;
  counters["flops_per_second"] = counters["flops"].value / seconds;
}

}  // namespace

void register_epochs(const Arguments& arguments, Devices& devices, Rows& rows) {
  // Rows of one network share its data and its reference.
  const auto training = std::make_shared<Training>(arguments);
  for (const TrainingPlan& plan : training->plans()) {
    const Configuration what = joined({{"family", "Epoch"}}, training->configuration(plan));
    for (const Target& target : training->targets(plan, devices)) {
      Row row{.configuration = joined(what, target.configuration),
              .device = target.device,
              .warnings = target.warnings,
              .derive = derive};
      training->expect(row, plan, target);
      row.make = [training, plan, target](Result& result) {
        return std::make_unique<PreparedEpoch>(training->prepare(plan, target, result), result);
      };
      rows.add(std::move(row));
    }
  }
}

}  // namespace crossover::bench
