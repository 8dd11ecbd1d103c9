// SPDX-License-Identifier: Apache-2.0
// Rows of networks. Family Epoch: one iteration trains it on its whole data set once. Family
// Minibatch: on one batch, as the tables of Shi et al. 2016 count. Family Forward: it uses it.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/times.h"
#include "crossover/cost.h"
#include "crossover/extensions.h"
#include "crossover/fingerprint.h"
#include "crossover/product.h"
#include "crossover/reference.h"
#include "crossover/start.h"
#include "rows/counters.h"
#include "rows/families.h"
#include "rows/training.h"
#include "rows/work.h"

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

  void expect(std::int64_t iterations) override { expect_passes(*made_.program, iterations); }

  std::vector<double> seconds_of_ranks() override { return seconds_of_passes(*made_.program); }

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
    for (const RowSpec& spec : training.rows_of(plan, devices)) {
      const Target target = target_of(spec, devices);
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
bool is_epoch_worth_minutes(const Row& row, int /*most_threads*/) {
  return is_in_f32(row) || row.device->has_threads() ||
         (row.spec.execution == Execution::graph && row.spec.placement == Placement::resident &&
          row.spec.products == ProductChoice::heuristic);
}

void register_epochs(const Arguments& arguments, Devices& devices, Rows& rows) {
  register_networks(arguments, Trains::epochs, devices, rows);
}

std::unique_ptr<PreparedBenchmark> make_training(RowContext& context, const RowSpec& row,
                                                 Result& result) {
  Training& training = context.training_of(row);
  const TrainingPlan plan = training.plan_of(row);
  TrainingProgram made = training.prepare(plan, target_of(row, context.devices), result);
  const ProgramFacts& facts = made.program->facts();
  std::map<std::string, double>& counters = result.counters;
  if (family_of(row).trains == Trains::epochs) {
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
bool is_minibatch_worth_minutes(const Row& row, int most_threads) {
  if (row.device->has_threads()) {
    return is_in_f32(row) && row.spec.threads == most_threads;
  }
  const std::optional<Execution> execution = row.spec.execution;
  return (execution == Execution::graph || (execution == Execution::automatic && is_in_f32(row))) &&
         row.spec.placement == Placement::resident && row.spec.products == ProductChoice::heuristic;
}

void register_minibatches(const Arguments& arguments, Devices& devices, Rows& rows) {
  register_networks(arguments, Trains::steps, devices, rows);
}

void register_passes(const Arguments& arguments, Devices& devices, Rows& rows) {
  register_networks(arguments, Trains::forward_passes, devices, rows);
}

// ---- Family Forward: one iteration is one use of a network, the forward pass of a batch. Where a
// GPU gets the batch from the host, the host gets the outputs back, as who asks for them does.

namespace {

using Clock = std::chrono::steady_clock;

// ---- How long single passes take, each timed by itself.

class Latencies {
 public:
  /// Times passes for so many seconds, at most as many as there is room for; none where one takes
  /// so long that the mean of a few says as much. Sets the counters.
  template <class Pass>
  void take(const Pass& pass, double seconds, std::map<std::string, double>& counters) {
    for (const auto& [counter, share] : quantiles) {
      counters.erase(counter);
    }
    const Clock::time_point start = Clock::now();
    pass();
    if (Clock::now() - start > long_pass) {
      return;
    }
    std::size_t passes = 0;
    const Clock::time_point end =
        start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    for (Clock::time_point now = start; passes < room && (now < end || passes < fewest);) {
      const Clock::time_point begin = Clock::now();
      pass();
      now = Clock::now();
      taken_[passes++] = now - begin;
    }
    std::sort(taken_.begin(), taken_.begin() + static_cast<std::ptrdiff_t>(passes));
    const auto count = static_cast<double>(passes);
    for (const auto& [counter, share] : quantiles) {
      if ((1 - share) * count >= 1 || share == 1) {
        const auto place = static_cast<std::size_t>(std::ceil(share * count)) - 1;
        counters[counter] = std::chrono::duration<double>(taken_[place]).count();
      }
    }
    counters["latency_passes"] = count;
    counters["clock_seconds"] = seconds_of_a_reading();
  }

 private:
  static constexpr std::size_t room = 10000;
  static constexpr std::size_t fewest = 20;
  static constexpr std::chrono::milliseconds long_pass{5};
  static constexpr std::array<std::pair<const char*, double>, 5> quantiles{
      {{"latency_p50_seconds", 0.5},
       {"latency_p90_seconds", 0.9},
       {"latency_p99_seconds", 0.99},
       {"latency_p999_seconds", 0.999},
       {"latency_max_seconds", 1}}};

  /// Which is in each latency once.
  static double seconds_of_a_reading() {
    constexpr int readings = 1000;
    const Clock::time_point start = Clock::now();
    for (int i = 1; i < readings; ++i) {
      [[maybe_unused]] const volatile auto now = Clock::now().time_since_epoch().count();
    }
    return std::chrono::duration<double>(Clock::now() - start).count() / readings;
  }

  std::vector<Clock::duration> taken_ = std::vector<Clock::duration>(room);
};

// ---- What is timed

class PreparedPass : public PreparedBenchmark {
 public:
  /// `returns`: the outputs are copied to the host.
  PreparedPass(ForwardProgram made, bool returns, Result& result)
      : made_(std::move(made)),
        outputs_(find(made_.workload, "outputs")),
        returned_(returns ? static_cast<std::size_t>(bytes(made_.workload[outputs_])) : 0),
        result_(result),
        profile_(result) {}

  void start() override { started_ = Clock::now(); }

  void run() override {
    made_.program->enqueue(0, 1);
    if (returned_.empty()) {
      made_.program->wait();
    } else {
      made_.program->download(outputs_, returned_);
    }
  }

  void check() override {
    const double timed_seconds = seconds_since(started_);
    latencies_.take([this] { run(); }, timed_seconds, result_.counters);
    static_cast<void>(made_.verified());
    profile_.take(*made_.program, timed_seconds);
  }

 private:
  ForwardProgram made_;
  Id outputs_;
  std::vector<std::byte> returned_;
  Result& result_;
  RowProfile profile_;
  Latencies latencies_;
  Instant started_;  ///< this repetition
};

/// Of a batch, as many as the reference computes in so many seconds; each by itself comes to the
/// same as in any batch.
std::int64_t rows_to_verify(const TrainingPlan& plan) {
  constexpr double seconds = 2;
  const double of_row = plan.flops / static_cast<double>(plan.options.batch);
  return static_cast<std::int64_t>(std::clamp(seconds * reference_flops_per_second / of_row, 1.0,
                                              static_cast<double>(plan.options.batch)));
}

}  // namespace

TensorVerification ForwardProgram::verified() const {
  return verify_outputs(*program, workload, expected, precision);
}

ForwardProgram Training::prepare_pass(const TrainingPlan& plan, const Target& asked,
                                      Result& result) {
  const Target target = as_chosen(asked, result);
  require_memory_for_data(plan);
  const Workload workload = workload_of(plan);
  const Backend& backend = *target.device->backend;
  const std::int64_t rows = rows_to_verify(plan);
  const Workload of_rows = forward_pass(plan.task.model, rows, plan.options.precision);
  Data data;
  CompiledNetwork compiled = compile(
      backend, workload, target, result,
      [&](const Plan& planned) {
        const double own =
            target.device->has_own_memory() ? 0 : static_cast<double>(planned.bytes());
        require_memory(plan,
                       bytes_of_data(plan) + own + static_cast<double>(reference_bytes(of_rows)));
        data = data_of(plan.task, plan.options.rows);
      },
      [&](Program& program, const Workload& own) { set_inputs(program, own, data.rows); });
  ForwardProgram made{std::move(compiled), plan.options.precision, {}};
  const std::uint64_t identity = fingerprint(fingerprint(workload), data.fingerprint);
  const double bytes_of_outputs = static_cast<double>(bytes(workload[find(workload, "outputs")]));
  result.counters["verification_seconds"] = verify_or_note(result, [&] {
    std::vector<double>& known = outputs_[identity];
    if (known.empty()) {
      known = reference_outputs(of_rows, first_rows(data.rows, rows));
    }
    made.expected = known;
    const TensorVerification found = made.verified();
    result.verification = {.reference = "float64 interpreter",
                           .unit = "entries",
                           .compared = found.entries,
                           .of = elements(workload[find(workload, "outputs")].shape),
                           .tolerance = found.tolerance,
                           .error = found.error};
  });
  count(plan, target, workload, made.workload, *made.program, result);
  result.workload = hexadecimal(identity);
  result.counters["peak_bytes"] = static_cast<double>(made.program->facts().bytes);
  if (target.options.placement != Placement::resident) {
    result.minimum_work->bytes_from_device = bytes_of_outputs;
  }
  return made;
}

std::unique_ptr<PreparedBenchmark> make_pass(RowContext& context, const RowSpec& row,
                                             Result& result) {
  Training& training = context.training_of(row);
  const Target target = target_of(row, context.devices);
  const bool returns =
      target.device->has_own_memory() && target.options.placement != Placement::resident;
  return std::make_unique<PreparedPass>(
      training.prepare_pass(training.plan_of(row), target, result), returns, result);
}

}  // namespace crossover::bench
