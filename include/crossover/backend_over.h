// SPDX-License-Identifier: Apache-2.0
// Backends that compile for another one in a way of their own, and are that one in all else.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "crossover/backend.h"

namespace crossover {

/// Seconds since some moment.
using Stopwatch = std::function<double()>;

/// The machine's own, which goes on however it is set.
double steady_seconds();

/// What they derive from; they say how to estimate and to plan.
class BackendOver : public Backend {
 public:
  /// `own` must outlive it.
  explicit BackendOver(const Backend& own) : own_(own) {}

  [[nodiscard]] Description describe() const override { return own_.describe(); }
  [[nodiscard]] GpuState state() const override { return own_.state(); }
  [[nodiscard]] std::string missing_for(Precision precision) const override {
    return own_.missing_for(precision);
  }
  [[nodiscard]] Workload optimize(Workload workload, const CompileOptions& options) const override {
    return own_.optimize(std::move(workload), options);
  }
  [[nodiscard]] std::vector<Execution> executions(const Workload& workload,
                                                  Precision precision) const override {
    return own_.executions(workload, precision);
  }
  [[nodiscard]] std::unique_ptr<Probe> make_probe(const ProbeSpec& spec) const override {
    return own_.make_probe(spec);
  }

 protected:
  [[nodiscard]] const Backend& own() const { return own_; }

 private:
  const Backend& own_;
};

/// Copies of a network that train at once (TrainingOptions::copies), side by side. Compiles a
/// training of so many for `own`, which must outlive it: each copy as a Program of its own. On the
/// CPU each thread trains some of the copies, one after the other, and each copy has one thread.
/// The last ones, for which there are more threads than copies, go one by one with all threads each
/// where a trial finds that faster; `now` is its clock. On a GPU all are of one Program
/// (CompileOptions::copies), or train in one launch (TrainsCopies::join()), or each has a stream.
/// What Execution::automatic comes to is decided with the first copy alone. Each copy has the rows
/// for itself.
std::unique_ptr<Backend> make_copies_backend(const Backend& own, std::int64_t copies,
                                             Stopwatch now = steady_seconds);

/// Batches that are assembled from rows while a network trains, as a framework's data loader does,
/// instead of lying ready. Compiles for `own`, which must take single rows
/// (TakesRows), and outlive it. A Program keeps the whole data set aside. Of each batch
/// the rows are brought, one by one and in the epoch's order (Workload::epoch), to where its step
/// reads them: by `workers` threads, each of which has every workers-th batch and goes ahead of the
/// training by as many batches as there are workers; or, without any, by the thread that trains,
/// before each step. A call of enqueue() begins with its first batch: nothing is brought ahead of
/// it, and it returns when all is done.
std::unique_ptr<Backend> make_loading_backend(const Backend& own, int workers);

}  // namespace crossover
