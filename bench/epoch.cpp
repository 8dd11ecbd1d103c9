// SPDX-License-Identifier: Apache-2.0
// Family Epoch: one iteration trains a network on its whole data set once.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <map>
#include <numeric>

#include "arranged.h"
#include "crossover/cost.h"
#include "crossover/dataset.h"
#include "crossover/launches.h"
#include "crossover/product.h"
#include "crossover/reference.h"
#include "crossover/start.h"
#include "crossover/training.h"
#include "crossover/verify.h"
#include "expected_seconds.h"
#include "families.h"
#include "require_memory.h"
#include "side.h"
#include "workload_demand.h"

namespace crossover::bench {
namespace {

/// What the reference may cost a row.
constexpr double verified_flops = 2e10;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Of the time of a row's repetitions, what its profiles may cost.
constexpr double profiled_share = 0.2;

/// Losses alone would not do: oneDNN's ReLU turns NaN into zero.
bool is_finite(Program& program, const Workload& workload) {
  for (const Role role : {Role::loss, Role::parameter}) {
    for (const Id id : tensors_of(workload, role)) {
      const std::vector<double> values = download(program, workload, id);
      if (!std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); })) {
        return false;
      }
    }
  }
  return true;
}

constexpr std::array kinds{OpCategory::product,        OpCategory::elementwise,
                           OpCategory::loss,           OpCategory::update,
                           OpCategory::copy_to_device, OpCategory::copy_from_device,
                           OpCategory::launch,         OpCategory::synchronization};

const char* counter_of(OpCategory kind) {
  switch (kind) {
    case OpCategory::product:
      return "seconds_product";
    case OpCategory::elementwise:
      return "seconds_elementwise";
    case OpCategory::loss:
      return "seconds_loss";
    case OpCategory::update:
      return "seconds_update";
    case OpCategory::copy_to_device:
      return "seconds_copy_to_device";
    case OpCategory::copy_from_device:
      return "seconds_copy_from_device";
    case OpCategory::launch:
      return "seconds_launch";
    case OpCategory::synchronization:
      return "seconds_synchronization";
  }
  return "";
}

double total(const Profile& profile) {
  return std::accumulate(profile.begin(), profile.end(), 0.0,
                         [](double sum, const auto& part) { return sum + part.second; });
}

/// The median, by total time, of as many profiles as fit `seconds`: one at least, 21 at most.
Profile median_profile(Program& program, double seconds) {
  constexpr std::size_t most = 21;
  std::vector<Profile> profiles;
  const auto start = std::chrono::steady_clock::now();
  do {
    profiles.push_back(program.profile());
  } while (profiles.size() < most && seconds_since(start) < seconds);
  std::sort(profiles.begin(), profiles.end(),
            [](const Profile& a, const Profile& b) { return total(a) < total(b); });
  return profiles[profiles.size() / 2];
}

void derive(benchmark::UserCounters& counters, double seconds) {
  double explained = 0;
  for (const OpCategory kind : kinds) {
    const auto counter = counters.find(counter_of(kind));
    explained += counter != counters.end() ? counter->second.value : 0;
  }
  counters["seconds_unexplained"] = seconds - explained;
  counters["seconds_per_epoch"] = seconds;
  counters["samples_per_second"] = counters["rows"].value / seconds;
  counters["flops_per_second"] = counters["flops"].value / seconds;
}

nlohmann::ordered_json verification_json(const Verification& verification) {
  nlohmann::ordered_json json = {{"reference", "float64 interpreter"},
                                 {"steps", verification.steps},
                                 {"steps_of", verification.steps_of},
                                 {"tolerance", verification.tolerance.loss},
                                 {"relative_error", verification.loss_error},
                                 {"parameter_tolerance", verification.tolerance.parameters},
                                 {"parameter_error", verification.parameter_error}};
  if (verification.undetermined > 0) {
    json["undetermined_updates"] = verification.undetermined;
  }
  return json;
}

/// A network as it is trained, on whatever device.
struct Plan {
  Task task;
  TrainingOptions training;

  [[nodiscard]] Workload epoch() const { return training_epoch(task.model, training); }
  [[nodiscard]] std::string key() const {
    return task.model.name + "/" + std::to_string(training.batch) + "/" +
           to_string(training.precision);
  }
};

class PreparedEpoch : public Prepared {
 public:
  PreparedEpoch(Workload workload, std::unique_ptr<Program> program)
      : workload_(std::move(workload)),
        program_(std::move(program)),
        steps_(static_cast<std::int64_t>(workload_.order.size())) {}

  void start() override {
    restart(*program_, workload_);
    started_ = std::chrono::steady_clock::now();
  }

  void run() override {
    program_->enqueue(0, steps_);
    program_->wait();
  }

  void check() override {
    const double timed_seconds = seconds_since(started_);
    timed_seconds_ += timed_seconds;
    if (!is_finite(*program_, workload_)) {
      throw std::runtime_error(
          "losses or parameters are not finite after the timed epochs: the training diverges; a "
          "smaller --lr may help");
    }
    if (profiled_seconds_ < profiled_share * timed_seconds_) {
      profile(profiled_share * timed_seconds);
    }
  }

  /// Takes the counters of the profile, in about `seconds`. They are taken again behind repetitions
  /// because the machine's speed drifts: a profile is only comparable with a time of its own
  /// moment.
  void profile(double seconds) {
    const auto start = std::chrono::steady_clock::now();
    for (const auto& [kind, spent] : median_profile(*program_, seconds)) {
      counters[counter_of(kind)] = spent;
    }
    profiled_seconds_ += seconds_since(start);
  }

  [[nodiscard]] const Workload& workload() const { return workload_; }
  [[nodiscard]] Program& program() { return *program_; }
  [[nodiscard]] std::int64_t steps() const { return steps_; }

 private:
  Workload workload_;
  std::unique_ptr<Program> program_;
  std::int64_t steps_;
  std::chrono::steady_clock::time_point started_;  ///< of this repetition
  double timed_seconds_ = 0;
  double profiled_seconds_ = 0;
};

class EpochFamily {
 public:
  EpochFamily(Arguments arguments, Devices& devices)
      : arguments_(std::move(arguments)), devices_(devices) {
    read_data();
  }

  [[nodiscard]] std::vector<Plan> plans() const;
  [[nodiscard]] std::vector<Side> sides(Precision precision) const;
  [[nodiscard]] Row row(const Plan& plan, const Side& side) const;
  std::unique_ptr<Prepared> make(const Plan& plan, const Side& side);

 private:
  void read_data();
  void require_memory(const Plan& plan, const Side& side) const;
  const Dataset& dataset_for(const Task& task);
  const Trajectory& trajectory_for(const Plan& plan);
  Verification verified(Program& program, const Workload& workload, const Plan& plan);

  const Arguments arguments_;
  Devices& devices_;
  std::map<std::string, Dataset> datasets_;         ///< by model
  std::map<std::string, Trajectory> trajectories_;  ///< by Plan::key()
};

void EpochFamily::read_data() {
  if (!arguments_.data) {
    return;
  }
  for (const Task& task : arguments_.tasks) {
    if (task.model.sample.size() != 1) {
      throw UsageError("--data: " + task.model.name + " does not read rows of plain numbers");
    }
    try {
      datasets_[task.model.name] =
          read_csv(*arguments_.data, task.model.sample[0], task.model.classes);
    } catch (const std::runtime_error& error) {
      throw UsageError("--data: " + std::string(error.what()) + " (" + task.model.name + " reads " +
                       std::to_string(task.model.sample[0]) + " features and " +
                       std::to_string(task.model.classes) + " classes)");
    }
  }
}

std::vector<Plan> EpochFamily::plans() const {
  std::vector<Plan> plans;
  for (const Task& task : arguments_.tasks) {
    const auto own = datasets_.find(task.model.name);
    const std::int64_t rows = own != datasets_.end() ? own->second.rows : task.rows;
    for (const std::int64_t batch :
         arguments_.batches.empty() ? std::vector{task.batch} : arguments_.batches) {
      for (const Precision precision : arguments_.precisions) {
        plans.push_back({.task = task,
                         .training = {.rows = rows,
                                      .batch = batch,
                                      .optimizer = task.optimizer,
                                      .accumulate = arguments_.accumulate,
                                      .precision = precision}});
      }
    }
  }
  return plans;
}

std::vector<Side> EpochFamily::sides(Precision precision) const {
  std::vector<Side> sides;
  for (const int threads : thread_counts(arguments_)) {
    sides.push_back(cpu_side(devices_, threads, precision));
  }
  for (const GpuMode& mode : arguments_.gpu_modes) {
    const auto of_mode =
        gpu_sides(arguments_, devices_,
                  {.precision = precision,
                   .execution = mode.execution,
                   .placement = mode.placement,
                   .loss_every_step = arguments_.loss_every_step},
                  {{"execution", to_string(mode.execution)}, {"data", to_string(mode.placement)}});
    sides.insert(sides.end(), of_mode.begin(), of_mode.end());
  }
  return sides;
}

/// Of an epoch, from one full batch: the list of all steps may be too long to make.
ExpectedWork expected_work(const Plan& plan, const Side& side) {
  TrainingOptions one_batch = plan.training;
  one_batch.batch = std::min(plan.training.batch, plan.training.rows);
  one_batch.rows = one_batch.batch;
  const auto rows = static_cast<double>(plan.training.rows);
  const double batches = rows / static_cast<double>(one_batch.rows);
  const Workload step = training_epoch(plan.task.model, one_batch);
  ExpectedWork work{.flops = batches * cost(step).flops};
  if (side.device->name() != "cpu") {
    const auto launches = cuda_launches(arranged(step, false), side.options);
    work.launches = batches * static_cast<double>(launches);
    if (side.options.placement != Placement::resident) {
      work.bytes_copied = rows * static_cast<double>(elements(plan.task.model.sample)) * 4;
    }
  }
  return work;
}

Row EpochFamily::row(const Plan& plan, const Side& side) const {
  Row row{.configuration = {{"family", "Epoch"},
                            {"model", plan.task.model.name},
                            {"batch", std::to_string(plan.training.batch)},
                            {"precision", to_string(plan.training.precision)}},
          .device = side.device,
          .quality = side.quality,
          .derive = derive};
  if (plan.training.accumulate > 1) {
    row.configuration.emplace_back("accumulate", std::to_string(plan.training.accumulate));
  }
  if (arguments_.loss_every_step) {
    row.configuration.emplace_back("loss", "step");
  }
  row.configuration.insert(row.configuration.end(), side.configuration.begin(),
                           side.configuration.end());
  try {
    const ExpectedWork work = expected_work(plan, side);
    row.expected_seconds =
        expected_seconds(*side.device, side.options.threads, arguments_.sweep.repetitions,
                         arguments_.sweep.min_time_seconds, work);
    row.reference = plan.key();
    row.reference_seconds = expected_reference_seconds(std::min(work.flops, verified_flops));
  } catch (const std::overflow_error& error) {
    throw UsageError(plan.task.model.name + ": " + error.what());
  }
  return row;
}

std::unique_ptr<Prepared> EpochFamily::make(const Plan& plan, const Side& side) {
  require_memory(plan, side);
  const auto steps = std::ssize(trajectory_for(plan).losses);
  const Workload epoch = plan.epoch();
  Workload workload = arranged(epoch, side.device == &devices_.cpu);
  const Dataset& dataset = dataset_for(plan.task);

  auto start = std::chrono::steady_clock::now();
  std::unique_ptr<Program> compiled = side.device->backend->compile(workload, side.options);
  auto row = std::make_unique<PreparedEpoch>(std::move(workload), std::move(compiled));
  Program& program = row->program();
  set_data(program, row->workload(), dataset);
  restart(program, row->workload());
  program.enqueue(0, steps);
  program.wait();
  // With what a process waits for before it can call the device at all.
  double first_call_seconds = seconds_since(start) + side.device->backend->describe().start_seconds;

  row->verification = verification_json(verified(program, row->workload(), plan));

  start = std::chrono::steady_clock::now();
  program.enqueue(steps, row->steps() - steps);
  program.wait();
  first_call_seconds += seconds_since(start);

  const std::vector<double> losses =
      download(program, row->workload(), find(row->workload(), "loss"));
  const Cost counted = cost(epoch);  // of the computation, however a backend arranges it
  row->demand = demand_of(row->workload(), counted, program, side.options, *side.device);
  row->label = description(plan.training.optimizer);
  row->counters = {{"params", static_cast<double>(parameter_count(row->workload()))},
                   {"batch", static_cast<double>(plan.training.batch)},
                   {"rows", static_cast<double>(plan.training.rows)},
                   {"steps", static_cast<double>(row->steps())},
                   {"flops", counted.flops},
                   {"bytes", counted.bytes},
                   {"products", static_cast<double>(product_count(epoch))},
                   {"launches", static_cast<double>(program.launches())},
                   {"first_call_seconds", first_call_seconds},
                   {"loss_first_epoch", std::accumulate(losses.begin(), losses.end(), 0.0) /
                                            static_cast<double>(losses.size())}};
  if (side.device == &devices_.cpu) {
    row->counters["cpu_threads"] = side.options.threads;
  }
  if (row->demand.bytes_to_device > 0) {
    row->counters["bytes_to_device"] = row->demand.bytes_to_device;
  }
  row->profile(0);
  return row;
}

void EpochFamily::require_memory(const Plan& plan, const Side& side) const {
  const auto require = [&](double needed) {
    bench::require_memory(arguments_, needed, "to train and verify " + plan.task.model.name);
  };
  const auto rows = static_cast<double>(plan.training.rows);
  const double data = rows * static_cast<double>(elements(plan.task.model.sample)) * sizeof(double);
  const double order = rows / static_cast<double>(plan.training.batch) * sizeof(Run);
  // First what can be told without the list of steps, which may be too large itself; then all of
  // it. Data and order exist twice for a moment: with the generator or the reference, and on the
  // way to the program.
  require(2 * (data + order));
  const Workload workload = plan.epoch();
  const bool on_cpu = side.device == &devices_.cpu;  // a GPU tells of its own memory
  const auto program = on_cpu ? side.device->backend->plan(workload, side.options)->bytes() : 0;
  require(static_cast<double>(program) + static_cast<double>(reference_bytes(workload)) +
          2 * (data + order));
}

const Dataset& EpochFamily::dataset_for(const Task& task) {
  const auto [at, is_new] = datasets_.try_emplace(task.model.name);
  if (is_new) {
    at->second = task.generate(task.rows);
  }
  return at->second;
}

/// `program` has just run the trajectory's steps from the start, and has in the end.
Verification EpochFamily::verified(Program& program, const Workload& workload, const Plan& plan) {
  const Trajectory& trajectory = trajectory_for(plan);
  try {
    return verify(program, workload, trajectory, plan.training.precision);
  } catch (const Mismatch& mismatch) {
    try {
      Reference reference(plan.epoch());
      set_data(reference, dataset_for(plan.task));
      return verify_between_kinks(program, workload, reference, std::ssize(trajectory.losses),
                                  plan.training.precision);
    } catch (const Mismatch&) {
      throw Mismatch(mismatch);  // what was found first is what is wrong
    }
  }
}

const Trajectory& EpochFamily::trajectory_for(const Plan& plan) {
  const auto at = trajectories_.find(plan.key());
  if (at != trajectories_.end()) {
    return at->second;
  }
  const Workload workload = plan.epoch();
  return trajectories_[plan.key()] = reference_trajectory(
             workload, dataset_for(plan.task), steps_to_verify(workload, verified_flops));
}

}  // namespace

void register_epochs(const Arguments& arguments, Devices& devices, Rows& rows) {
  // Rows of one network share its data and its reference.
  const auto family = std::make_shared<EpochFamily>(arguments, devices);
  for (const Plan& plan : family->plans()) {
    for (const Side& side : family->sides(plan.training.precision)) {
      Row row = family->row(plan, side);
      row.make = [family, plan, side] { return family->make(plan, side); };
      rows.add(std::move(row));
    }
  }
}

}  // namespace crossover::bench
