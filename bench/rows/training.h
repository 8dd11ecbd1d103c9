// SPDX-License-Identifier: Apache-2.0
// What families of rows that train networks share: the data, the references, and a network compiled
// and verified on a target.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "command_line/arguments.h"
#include "command_line/axes.h"
#include "crossover/backend.h"
#include "crossover/catalogue.h"
#include "crossover/dataset.h"
#include "crossover/training.h"
#include "crossover/verify.h"
#include "rows/device.h"
#include "rows/row.h"

namespace crossover::bench {

// ---- A network as a row trains it, and how much of that a reference can repeat.

/// A network as it is trained, on whatever device.
struct TrainingPlan {
  Task task;
  TrainingOptions options;
  bool trains = true;  ///< else an iteration is the forward pass of a batch
  double flops = 0;    ///< of an iteration, nearly
};

/// What an iteration computes, before any backend arranges it.
Workload workload_of(const TrainingPlan& plan);

/// How a row is verified in the time that there is.
struct VerificationPlan {
  std::int64_t batch = 0;          ///< whose steps are compared; 0: of the row's own
  double flops_of_loss = 0;        ///< of the first loss at the row's batch
  double flops_of_steps = 0;       ///< what rows of one network share, as they do the first loss
  double flops_of_operations = 0;  ///< of each row
};

VerificationPlan verification_plan(const TrainingPlan& plan);

/// Steps that are verified at least.
constexpr std::int64_t verified_steps = 2;
/// What the reference may take for steps beyond these, where they are cheap.
constexpr double more_steps_seconds = 1;

/// Of one full batch.
TrainingOptions of_one_step(TrainingOptions options, std::int64_t batch);

TrainingOptions of_one_copy(TrainingOptions options);

/// Of all rows, from one full batch: the list of all steps may be too long to make.
double approximate_flops(const TrainingPlan& plan);

double flops_of_step(const TrainingPlan& plan);

/// Of the data, so many rows.
Dataset first_rows(const Dataset& all, std::int64_t rows);

// ---- A row that was made before stays what it was chosen to be.

/// The target for programs that run as one of the row was chosen to; before one was, graphs take
/// the form that is the fastest.
Target as_chosen(Target target, const Result& result);

// ---- Compiled and verified

/// A network compiled for a target.
struct CompiledNetwork {
  Workload workload;  ///< of an iteration, as it was compiled
  std::unique_ptr<Program> program;
};

/// One that trains, verified there.
struct TrainingProgram : CompiledNetwork {
  double first_loss = 0;  ///< mean of the steps of the first iteration

  [[nodiscard]] std::int64_t steps() const { return std::ssize(workload.order); }
  /// Throws std::runtime_error where a loss or a parameter is not finite.
  void require_finite() const;
  /// Trains so many steps from the deterministic start, at most those of an iteration.
  [[nodiscard]] FirstSteps first_steps(std::int64_t count) const;
  /// Whether it comes to what a verified instance came to, within the tolerances of verification.
  [[nodiscard]] bool reproduces(const FirstSteps& verified, Precision precision) const;
};

/// The forward pass of a batch, verified there.
struct ForwardProgram : CompiledNetwork {
  Precision precision = Precision::f32;
  std::vector<double> expected;  ///< outputs of the first rows, by the reference

  /// Throws Mismatch where its outputs are not those that are expected.
  [[nodiscard]] TensorVerification verified() const;
};

class Training {
 public:
  /// `trains`: what one iteration of its rows is, epochs or steps.
  Training(const Arguments& arguments, Trains trains) : arguments_(arguments), trains_(trains) {}

  /// Each network with each batch size and precision. Reads --data. Throws UsageError where that
  /// can't be read, or a network is beyond counting.
  [[nodiscard]] std::vector<TrainingPlan> plans();

  /// What the row trains. The same errors, and std::out_of_range where the
  /// command line knows no such network.
  [[nodiscard]] TrainingPlan plan_of(const RowSpec& row);

  /// What the plan decides of a row.
  [[nodiscard]] RowSpec work_of(const TrainingPlan& plan) const;

  /// Its rows: on the CPU each number of threads, on a GPU each of the command line's modes.
  [[nodiscard]] std::vector<RowSpec> rows_of(const TrainingPlan& plan,
                                             const Devices& devices) const;

  /// Compiles it, runs its first iteration, and verifies what a reference can in a few seconds.
  /// Fills in the counters that all families of training have. Throws OutOfMemory before it takes
  /// any.
  TrainingProgram prepare(const TrainingPlan& plan, const Target& asked, Result& result);
  /// The same of forward passes, whose outputs are verified.
  ForwardProgram prepare_pass(const TrainingPlan& plan, const Target& asked, Result& result);

  /// A guess at a row's seconds, and what it shares with other rows of the network. The row has its
  /// repetitions and its least time, or the sweep's.
  void expect(Row& row, const TrainingPlan& plan, const Target& target) const;

 private:
  [[nodiscard]] std::vector<std::int64_t> batches_for(const Task& task) const;
  struct Data {
    Dataset rows;
    std::uint64_t fingerprint = 0;
  };
  /// An iteration as it is computed, however a backend optimizes it, and what it trains on.
  struct Subject {
    TrainingPlan plan;
    Workload workload;
    Data data;
    std::uint64_t fingerprint = 0;  ///< of both
    std::int64_t shares = 1;        ///< whose steps, one after another, are one of the training
  };

  /// The user's rows, as the network reads them; null without --data.
  const Data* own_data(const Task& task);
  /// The first `rows` of its data.
  [[nodiscard]] Data data_of(const Task& task, std::int64_t rows);
  void make_data(Subject& subject);
  [[nodiscard]] Subject subject_of(const TrainingPlan& plan);
  /// The same share after share, where losses and parameters of so many ranks must be those.
  [[nodiscard]] static std::optional<Subject> by_shares(const Subject& subject, int ranks);
  /// The target's; that of all ranks, in which a Program is one of the whole batch; or one that
  /// loads batches. Throws Unsupported.
  [[nodiscard]] static std::shared_ptr<const Backend> backend_of(const TrainingPlan& plan,
                                                                 const Target& target);
  [[nodiscard]] static double bytes_of_data(const TrainingPlan& plan);
  void require_memory(const TrainingPlan& plan, double bytes) const;
  void require_memory_for_data(const TrainingPlan& plan) const;
  void require_memory_for(const TrainingPlan& plan, const Target& target, const Workload& workload,
                          const Plan& planned) const;
  /// Compiles the Workload and runs an iteration, on data that `make_data` makes once the memory
  /// that the plan takes is known, and `set_data` gives it. Puts what that shows into the result.
  static CompiledNetwork compile(
      const Backend& backend, const Workload& workload, const Target& target, Result& result,
      const std::function<void(const Plan& planned)>& make_data,
      const std::function<void(Program& program, const Workload& own)>& set_data);
  /// The counters that all rows of networks have, and the minimum work.
  static void count(const TrainingPlan& plan, const Target& target, const Workload& workload,
                    const Workload& compiled, const Program& program, Result& result);
  const Trajectory& trajectory_of(const Subject& subject);
  double first_loss_of(const Subject& subject);
  Verification verified(Program& program, const Workload& workload, const Subject& expected);
  [[nodiscard]] OperationVerification operations_verified(const Subject& subject,
                                                          const Target& target);
  RowVerification verified(TrainingProgram& made, const Subject& subject, const Subject& expected,
                           const Target& target, const Result& result);

  const Arguments& arguments_;
  Trains trains_;
  std::map<std::string, Data> data_;                      ///< of --data, by model
  std::map<std::uint64_t, Trajectory> trajectories_;      ///< by fingerprint
  std::map<std::uint64_t, double> first_losses_;          ///< by fingerprint
  std::map<std::uint64_t, std::vector<double>> outputs_;  ///< by fingerprint
};

}  // namespace crossover::bench
