// SPDX-License-Identifier: Apache-2.0
// Rows of networks, made. Family Epoch: one iteration trains it on its whole data set once. Family
// Minibatch: on one batch, as the tables of Shi et al. 2016 count. Family Forward: it uses it.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <numeric>
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
#include "families/families.h"
#include "families/training/verify.h"
#include "families/work.h"
#include "rows/counters.h"

namespace crossover::bench {
namespace {

using Clock = std::chrono::steady_clock;

// ---- Memory: a row is refused before it takes any.

/// Of data and order, which exist twice for a moment: with the generator or the reference, and on
/// the way to the program.
double bytes_of_data(const TrainingPlan& plan) {
  const auto rows = static_cast<double>(plan.options.rows);
  const double data = rows * static_cast<double>(elements(plan.task.model.sample)) * sizeof(double);
  const double order = rows / static_cast<double>(plan.options.batch) * sizeof(Run);
  return 2 * (data + order);
}

std::string purpose_of(const TrainingPlan& plan) {
  return "to train and verify " + plan.task.model.name;
}

/// What can be told without the list of steps, which may be too large itself.
void require_memory_of_data(const TrainingPlan& plan, const Arguments& arguments) {
  require_memory(arguments, bytes_of_data(plan), purpose_of(plan));
}

/// On the host, of the row and its verification. `planned`: the subject on the target.
double bytes_needed(const Subject& subject, const Target& target, const Plan& planned) {
  const TrainingPlan& plan = subject.plan;
  const bool on_host = !target.device->has_own_memory();  // others tell of their own
  const double data = bytes_of_data(plan) + static_cast<double>(on_host ? planned.bytes() : 0);
  if (plan.trains == Trains::forward_passes) {
    return data + static_cast<double>(reference_bytes(pass_to_verify(plan)));
  }
  // Beside the program that will be timed there is one that keeps all tensors, to verify them.
  const VerificationPlan verification = verification_plan(plan);
  if (verification.batch == 0) {
    return data + static_cast<double>(reference_bytes(subject.workload) +
                                      (on_host ? planned.bytes_keeping_activations() : 0));
  }
  const Workload verified =
      training_epoch(plan.task.model, of_one_step(plan.options, verification.batch));
  const double reference = static_cast<double>(
      std::max(reference_bytes(forward_part(subject.workload)), reference_bytes(verified)));
  if (!on_host) {
    return data + reference;
  }
  const Backend& own = *target.device->backend;
  const auto keeping = own.plan(own.optimize(unshuffled(verified), target.options), target.options);
  return data + reference + static_cast<double>(keeping->bytes_keeping_activations());
}

// ---- Compiled

/// Compiles the subject, gives it its data once the memory that the plan takes is known, and runs
/// an iteration. Puts what that shows into the result. Throws OutOfMemory.
CompiledNetwork compile(const Backend& backend, Subject& subject, const Target& target,
                        const Arguments& arguments, References& references, Result& result) {
  CompiledNetwork made{.workload = backend.optimize(subject.workload, target.options),
                       .program = {}};
  const Instant planning = Clock::now();
  const std::unique_ptr<Plan> planned = backend.plan(made.workload, target.options);
  const double planning_seconds = seconds_since(planning);
  require_memory(arguments, bytes_needed(subject, target, *planned), purpose_of(subject.plan));
  references.complete(subject);
  const Instant start = Clock::now();
  made.program = planned->instantiate();
  const ProgramFacts& facts = made.program->facts();
  if (facts.chosen) {
    result.chosen = spec_of(*facts.chosen, target.device->axes());
    made.workload = backend.optimize(subject.workload, as_chosen(target, result).options);
  }
  if (subject.plan.trains == Trains::forward_passes) {
    set_inputs(*made.program, made.workload, subject.data.rows);
  } else {
    set_data(*made.program, made.workload, subject.data.rows);
  }
  restart(*made.program, made.workload);
  made.program->enqueue(0, std::ssize(made.workload.order));
  made.program->wait();
  result.counters = target.counters;
  // With what a process waits for before it can call the device at all.
  result.counters["first_call_seconds"] =
      planning_seconds + seconds_since(start) + backend.describe().start_seconds;
  result.has_steps = true;
  result.graph_form = facts.graph_form;
  result.library_engines = facts.library_engines;
  return made;
}

/// The counters that all rows of networks have, and the minimum work.
void count(const Subject& subject, const Target& target, const CompiledNetwork& made,
           Result& result) {
  const TrainingOptions& options = subject.plan.options;
  const ProgramFacts& facts = made.program->facts();
  const Cost counted = cost(subject.workload);
  result.verification.take(facts.arithmetic, options.precision);
  result.counters.merge(std::map<std::string, double>{
      {"params",
       static_cast<double>(parameter_count(made.workload)) / static_cast<double>(options.copies)},
      {"batch", static_cast<double>(options.batch)},
      {"flops", counted.flops},
      {"bytes", counted.bytes},
      {"products", static_cast<double>(product_count(subject.workload))},
      {"launches", static_cast<double>(facts.launches)}});
  if (facts.threads) {
    result.counters["threads_used"] = *facts.threads;
  }
  if (target.ranks == 1) {  // ceilings are those of one process
    result.minimum_work = minimum_work_of(made.workload, counted, *made.program,
                                          as_chosen(target, result).options, *target.device);
    if (result.minimum_work->bytes_to_device > 0) {
      result.counters["bytes_to_device"] = result.minimum_work->bytes_to_device;
    }
  }
}

/// Compiles it, runs its first iteration, and verifies what a reference can in a few seconds. Fills
/// in the counters that all families of training have. Throws OutOfMemory before it takes any.
TrainingProgram prepare(const TrainingPlan& plan, const Target& asked, const Arguments& arguments,
                        References& references, Result& result) {
  // A row that is made again for more repetitions stays what it was chosen to be.
  const Target target = as_chosen(asked, result);
  require_memory_of_data(plan, arguments);
  const auto backend = backend_of(plan, target);
  Subject subject{.plan = plan, .workload = workload_of(plan), .data = {}};
  TrainingProgram made{compile(*backend, subject, target, arguments, references, result)};
  const std::vector<double> losses =
      download(*made.program, made.workload, find(made.workload, "loss"));
  made.first_loss =
      std::accumulate(losses.begin(), losses.end(), 0.0) / static_cast<double>(losses.size());
  const std::optional<Subject> shares = by_shares(subject, target.ranks);
  const Subject& expected = shares ? *shares : subject;
  result.counters["verification_seconds"] = verify_or_note(result, [&] {
    if (result.first_steps && made.reproduces(*result.first_steps, target.options.precision)) {
      return;
    }
    result.verification =
        verified(made, subject, expected, as_chosen(target, result), result, references);
    result.first_steps = made.first_steps(
        result.verification.more.contains("batch") ? 1 : result.verification.compared);
  });
  count(subject, target, made, result);
  result.workload = hexadecimal(expected.fingerprint);
  result.label = optimizer_label(plan.options.optimizer);
  result.counters["logits"] =
      static_cast<double>(plan.options.rows * logits_of_a_sample(plan.task.model));
  if (const auto loops = made.program->facts().graph_loops) {
    result.counters["graph_loops"] = static_cast<double>(*loops);
  }
  if (result.graph_form) {
    result.counters["graph_streams"] = result.graph_form->streams;
  }
  return made;
}

/// The same of a pass, whose outputs are verified.
ForwardProgram prepare_pass(const TrainingPlan& plan, const Target& asked,
                            const Arguments& arguments, References& references, Result& result) {
  const Target target = as_chosen(asked, result);
  require_memory_of_data(plan, arguments);
  Subject subject{.plan = plan, .workload = workload_of(plan), .data = {}};
  ForwardProgram made{
      compile(*target.device->backend, subject, target, arguments, references, result),
      plan.options.precision,
      {}};
  const Tensor& outputs = subject.workload[find(subject.workload, "outputs")];
  result.counters["verification_seconds"] = verify_or_note(result, [&] {
    made.expected = references.outputs_of(subject);
    const TensorVerification found = made.verified();
    result.verification = {.reference = "float64 interpreter",
                           .unit = "entries",
                           .compared = found.entries,
                           .of = elements(outputs.shape),
                           .tolerance = found.tolerance,
                           .error = found.error};
  });
  count(subject, target, made, result);
  result.workload = hexadecimal(subject.fingerprint);
  result.counters["peak_bytes"] = static_cast<double>(made.program->facts().bytes);
  if (target.options.placement != Placement::resident) {
    result.minimum_work->bytes_from_device = static_cast<double>(bytes(outputs));
  }
  return made;
}

// ---- What is timed

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

/// How long single passes take, each timed by itself.
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

/// Where a GPU gets the batch from the host, the host gets the outputs back, as who asks for them
/// does.
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

}  // namespace

std::unique_ptr<PreparedBenchmark> make_training(RowContext& context, const RowSpec& row,
                                                 Result& result) {
  const TrainingPlan plan = training_plan_of(row, context.arguments, context.references);
  TrainingProgram made =
      prepare(plan, target_of(row, context.devices), context.arguments, context.references, result);
  const ProgramFacts& facts = made.program->facts();
  std::map<std::string, double>& counters = result.counters;
  if (plan.trains == Trains::epochs) {
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

std::unique_ptr<PreparedBenchmark> make_pass(RowContext& context, const RowSpec& row,
                                             Result& result) {
  const TrainingPlan plan = training_plan_of(row, context.arguments, context.references);
  const Target target = target_of(row, context.devices);
  const bool returns =
      target.device->has_own_memory() && target.options.placement != Placement::resident;
  return std::make_unique<PreparedPass>(
      prepare_pass(plan, target, context.arguments, context.references, result), returns, result);
}

}  // namespace crossover::bench
