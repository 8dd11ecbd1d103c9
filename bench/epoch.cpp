// SPDX-License-Identifier: Apache-2.0
#include "epoch.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <sstream>

#include "crossover/cost.h"
#include "crossover/machine.h"
#include "crossover/memory.h"
#include "crossover/reference.h"
#include "crossover/start.h"
#include "crossover/training.h"
#include "measure.h"

namespace crossover::bench {

/// A row as it was asked for.
struct EpochFamily::Plan {
  Task task;
  TrainingOptions training;
  int threads;

  [[nodiscard]] Workload epoch() const { return training_epoch(task.model, training); }
  [[nodiscard]] std::string key() const {
    return task.model.name + "/" + std::to_string(training.batch);
  }
};

/// A row compiled and verified, ready to be timed; or the reason why it never will be.
struct EpochFamily::Prepared {
  Workload workload;
  std::unique_ptr<Program> program;
  Cost cost;
  double first_call_seconds = 0;
  double loss_first_epoch = 0;
  Profile profile;
  std::string refusal;
};

namespace {

/// What the reference may cost a row, and what it does per second at least: guesses for a few
/// seconds.
constexpr double verified_flops = 2e10;
constexpr double reference_flops_per_second = 1e10;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::string mebibytes(double bytes) {
  constexpr double mebibyte = 1024.0 * 1024;
  std::ostringstream text;
  text.precision(bytes < 10 * mebibyte ? 2 : 0);
  text << std::fixed << bytes / mebibyte << " MiB";
  return text.str();
}

std::vector<int> default_threads(int cores) {
  std::vector<int> threads;
  for (int t = 1; t < cores; t *= 2) {
    threads.push_back(t);
  }
  threads.push_back(cores);
  return threads;
}

/// A guess at a row's time: for the progress line only.
double expected_seconds(const Arguments& arguments, double flops, int threads) {
  constexpr double flops_per_second = 2e10;
  const double epoch = flops / (flops_per_second * std::sqrt(threads));
  return arguments.sweep.repetitions *
             std::max(1.4 * arguments.sweep.min_time_seconds, 1.2 * epoch) +
         std::min(flops, verified_flops) / reference_flops_per_second;
}

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

constexpr std::array kinds{Kind::product, Kind::elementwise,    Kind::loss,
                           Kind::update,  Kind::copy_to_device, Kind::copy_from_device,
                           Kind::launch,  Kind::synchronization};

const char* counter_of(Kind kind) {
  switch (kind) {
    case Kind::product:
      return "seconds_product";
    case Kind::elementwise:
      return "seconds_elementwise";
    case Kind::loss:
      return "seconds_loss";
    case Kind::update:
      return "seconds_update";
    case Kind::copy_to_device:
      return "seconds_copy_to_device";
    case Kind::copy_from_device:
      return "seconds_copy_from_device";
    case Kind::launch:
      return "seconds_launch";
    case Kind::synchronization:
      return "seconds_synchronization";
  }
  return "";
}

/// "sgd lr=0.1": what the row's name does not say.
std::string description(const Optimizer& optimizer) {
  std::ostringstream text;
  if (const auto* adamw = std::get_if<AdamWOptions>(&optimizer)) {
    text << "adamw lr=" << adamw->learning_rate << " weight_decay=" << adamw->weight_decay;
  } else {
    text << "sgd lr=" << std::get<SgdOptions>(optimizer).learning_rate;
  }
  return text.str();
}

double total(const Profile& profile) {
  return std::accumulate(profile.begin(), profile.end(), 0.0,
                         [](double sum, const auto& part) { return sum + part.second; });
}

/// The median, by total time, of several profiles of a short epoch; the only one of a long epoch.
Profile median_profile(Program& program) {
  constexpr std::size_t most = 21;
  constexpr double enough_seconds = 0.2;
  std::vector<Profile> profiles;
  const auto start = std::chrono::steady_clock::now();
  do {
    profiles.push_back(program.profile());
  } while (profiles.size() < most && seconds_since(start) < enough_seconds);
  std::sort(profiles.begin(), profiles.end(),
            [](const Profile& a, const Profile& b) { return total(a) < total(b); });
  return profiles[profiles.size() / 2];
}

void derive(benchmark::UserCounters& counters, double seconds) {
  double explained = 0;
  for (const Kind kind : kinds) {
    const auto counter = counters.find(counter_of(kind));
    explained += counter != counters.end() ? counter->second.value : 0;
  }
  counters["seconds_unexplained"] = seconds - explained;
  counters["seconds_per_epoch"] = seconds;
  counters["samples_per_second"] = counters["rows"].value / seconds;
  counters["flops_per_second"] = counters["flops"].value / seconds;
}

}  // namespace

EpochFamily::EpochFamily(const Arguments& arguments, const Backend& backend, Rows& rows)
    : arguments_(arguments), backend_(backend), rows_(rows), cores_(this_machine().cores) {
  if (!arguments.data) {
    return;
  }
  for (const Task& task : arguments.tasks) {
    if (task.model.sample.size() != 1) {
      throw UsageError("--data: " + task.model.name + " does not read rows of plain numbers");
    }
    try {
      datasets_[task.model.name] =
          read_csv(*arguments.data, task.model.sample[0], task.model.classes);
    } catch (const std::runtime_error& error) {
      throw UsageError("--data: " + std::string(error.what()) + " (" + task.model.name + " reads " +
                       std::to_string(task.model.sample[0]) + " features and " +
                       std::to_string(task.model.classes) + " classes)");
    }
  }
}

EpochFamily::~EpochFamily() = default;

/// Of an epoch, from one full batch: the list of all steps may be too long to make.
double EpochFamily::approximate_flops(const Plan& plan) {
  TrainingOptions one_batch = plan.training;
  one_batch.batch = std::min(plan.training.batch, plan.training.rows);
  one_batch.rows = one_batch.batch;
  return cost(training_epoch(plan.task.model, one_batch)).flops *
         static_cast<double>(plan.training.rows) / static_cast<double>(one_batch.rows);
}

void EpochFamily::release(const std::string& name) { prepared_.erase(name); }

void EpochFamily::register_rows() {
  for (const Task& task : arguments_.tasks) {
    const auto own = datasets_.find(task.model.name);
    const std::int64_t rows = own != datasets_.end() ? own->second.rows : task.rows;
    for (const std::int64_t batch :
         arguments_.batches.empty() ? std::vector{task.batch} : arguments_.batches) {
      for (const int threads :
           arguments_.threads.empty() ? default_threads(cores_) : arguments_.threads) {
        const Plan plan{.task = task,
                        .training = {.rows = rows,
                                     .batch = batch,
                                     .optimizer = task.optimizer,
                                     .accumulate = arguments_.accumulate},
                        .threads = threads};
        Row row{.configuration = {{"family", "Epoch"},
                                  {"model", task.model.name},
                                  {"batch", std::to_string(batch)},
                                  {"precision", to_string(plan.training.precision)}}};
        if (arguments_.accumulate > 1) {
          row.configuration.emplace_back("accumulate", std::to_string(arguments_.accumulate));
        }
        row.configuration.insert(row.configuration.end(),
                                 {{"device", backend_.describe().device},
                                  {"execution", "eager"},
                                  {"cpu_threads", std::to_string(threads)}});
        try {
          row.expected_seconds = expected_seconds(arguments_, approximate_flops(plan), threads);
        } catch (const std::overflow_error& error) {
          throw UsageError(task.model.name + ": " + error.what());
        }
        row.derive = derive;
        const char* wait_policy = std::getenv("OMP_WAIT_POLICY");
        if (threads > 1 && wait_policy != nullptr && std::string(wait_policy) == "passive") {
          row.quality.emplace_back("OMP_WAIT_POLICY=passive slows rows of several threads");
        }
        if (threads > cores_) {
          row.quality.push_back("oversubscribed: " + std::to_string(threads) + " threads on " +
                                std::to_string(cores_) + " cores");
        }
        const std::string name = row_name(row.configuration);
        rows_.add(std::move(row));
        benchmark::RegisterBenchmark(name.c_str(), [this, plan, name](benchmark::State& state) {
          run(state, plan, name);
        })->Unit(benchmark::kMillisecond);
      }
    }
  }
}

void EpochFamily::run(benchmark::State& state, const Plan& plan, const std::string& name) {
  Prepared& row = prepare(plan, name);
  if (!row.refusal.empty()) {
    state.SkipWithError(row.refusal.c_str());
    return;
  }
  restart(*row.program, row.workload);
  const auto steps = static_cast<std::int64_t>(row.workload.order.size());
  measure(state, *row.program, steps);

  if (!is_finite(*row.program, row.workload)) {
    rows_[name].outcome = Outcome::failed;
    state.SkipWithError(
        "losses or parameters are not finite after the timed epochs: the training diverges; a "
        "smaller "
        "--lr may help");
    return;
  }
  state.SetLabel(description(plan.training.optimizer));
  const auto count = [&](const char* counter, double value) { state.counters[counter] = value; };
  count("params", static_cast<double>(parameter_count(row.workload)));
  count("batch", static_cast<double>(plan.training.batch));
  count("cpu_threads", plan.threads);
  count("rows", static_cast<double>(plan.training.rows));
  count("steps", static_cast<double>(steps));
  count("flops", row.cost.flops);
  count("first_call_seconds", row.first_call_seconds);
  count("loss_first_epoch", row.loss_first_epoch);
  for (const auto& [kind, seconds] : row.profile) {
    count(counter_of(kind), seconds);
  }
}

EpochFamily::Prepared& EpochFamily::prepare(const Plan& plan, const std::string& name) {
  std::unique_ptr<Prepared>& slot = prepared_[name];
  if (slot) {
    return *slot;
  }
  try {
    slot = make(plan, name);
  } catch (const Unsupported& error) {
    slot = std::make_unique<Prepared>(Prepared{.refusal = error.what()});
    rows_[name].outcome = Outcome::skipped;
  } catch (const OutOfMemory& error) {
    slot = std::make_unique<Prepared>(Prepared{.refusal = error.what()});
    rows_[name].outcome = Outcome::skipped;
  } catch (const std::bad_alloc&) {
    slot = std::make_unique<Prepared>(Prepared{.refusal = "the memory ran out"});
    rows_[name].outcome = Outcome::skipped;
  } catch (const std::exception& error) {
    slot = std::make_unique<Prepared>(Prepared{.refusal = error.what()});
    rows_[name].outcome = Outcome::failed;
  }
  return *slot;
}

std::unique_ptr<EpochFamily::Prepared> EpochFamily::make(const Plan& plan,
                                                         const std::string& name) {
  require_memory(plan);
  const Trajectory& trajectory = trajectory_for(plan);
  const auto verified = static_cast<std::int64_t>(trajectory.losses.size());

  auto row = std::make_unique<Prepared>();
  const Workload epoch = plan.epoch();
  row->workload = fuse_update(fuse(epoch));
  row->cost = cost(epoch);  // of the computation, however a backend arranges it
  const auto steps = static_cast<std::int64_t>(row->workload.order.size());

  auto start = std::chrono::steady_clock::now();
  row->program = backend_.compile(row->workload, {.threads = plan.threads});
  set_data(*row->program, row->workload, dataset_for(plan.task));
  restart(*row->program, row->workload);
  row->program->enqueue(0, verified);
  row->program->wait();
  row->first_call_seconds = seconds_since(start);

  rows_[name].verification = verify(*row->program, row->workload, trajectory);

  start = std::chrono::steady_clock::now();
  row->program->enqueue(verified, steps - verified);
  row->program->wait();
  row->first_call_seconds += seconds_since(start);

  const std::vector<double> losses =
      download(*row->program, row->workload, find(row->workload, "loss"));
  row->loss_first_epoch =
      std::accumulate(losses.begin(), losses.end(), 0.0) / static_cast<double>(losses.size());
  row->profile = median_profile(*row->program);
  return row;
}

void EpochFamily::require_memory(const Plan& plan) const {
  const auto available =
      static_cast<double>(arguments_.memory_limit_bytes.value_or(available_memory_bytes()));
  const auto require = [&](double needed) {
    if (needed > available) {
      throw OutOfMemory("too little memory: " + mebibytes(needed) +
                        " are needed to train and verify " + plan.task.model.name + ", " +
                        mebibytes(available) + " are available");
    }
  };
  const auto rows = static_cast<double>(plan.training.rows);
  const double data = rows * static_cast<double>(elements(plan.task.model.sample)) * sizeof(double);
  const double order = rows / static_cast<double>(plan.training.batch) * sizeof(Run);
  // First what can be told without the list of steps, which may be too large itself; then all of
  // it. Data and order exist twice for a moment: with the generator or the reference, and on the
  // way to the program.
  require(2 * (data + order));
  const Workload workload = plan.epoch();
  require(static_cast<double>(backend_.bytes_needed(workload)) +
          static_cast<double>(reference_bytes(workload)) + 2 * (data + order));
}

const Dataset& EpochFamily::dataset_for(const Task& task) {
  const auto [at, is_new] = datasets_.try_emplace(task.model.name);
  if (is_new) {
    at->second = task.generate(task.rows);
  }
  return at->second;
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

}  // namespace crossover::bench
