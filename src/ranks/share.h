// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "crossover/backend.h"
#include "crossover/dataset.h"
#include "crossover/model.h"
#include "crossover/ranks.h"
#include "crossover/training.h"

namespace crossover {

// ---- One rank's part of a training: which rows of the data are its own, and its Program.

/// The rows that a rank takes of the whole data, in the order in which it trains on them.
std::vector<std::int64_t> rows_of_rank(const TrainingOptions& share);

/// These rows of the data, in this order.
Dataset picked(const Dataset& all, const std::vector<std::int64_t>& rows);

/// The part of each step's batch that is the rank's: what its loss counts in the loss of the whole.
std::vector<double> weights_of(const TrainingOptions& share);

/// Planned, then made.
class Share {
 public:
  /// `share`: its rank is that of `options.ranks`. Throws as Backend::plan() does.
  Share(const Backend& backend, const Model& model, const TrainingOptions& share,
        const CompileOptions& options);

  /// Of a Workload and its Program that are made already.
  Share(Workload workload, std::unique_ptr<Program> program)
      : workload_(std::move(workload)), program_(std::move(program)) {}

  void instantiate() { program_ = plan_->instantiate(); }

  /// A tensor of the whole training: of the data set the rank's rows, else all of it.
  void upload(Id id, std::span<const std::byte> whole);

  [[nodiscard]] const Workload& workload() const { return workload_; }
  [[nodiscard]] const Plan& plan() const { return *plan_; }
  [[nodiscard]] Program& program() { return *program_; }
  [[nodiscard]] std::int64_t steps() const { return std::ssize(workload_.order); }

  /// Its own tensor, as it is stored.
  [[nodiscard]] std::vector<std::byte> download(Id id);

 private:
  Workload workload_;
  std::vector<std::int64_t> rows_;
  std::unique_ptr<Plan> plan_;
  std::unique_ptr<Program> program_;
};

// ---- What make_shared_sum() is made of on each rank.

/// The ranks' sum of one tensor, by itself. `gpu`: in whose memory it is; null: in the host's.
std::unique_ptr<Share> sum_of(Ranks& ranks, std::int64_t floats, const Backend* gpu);

}  // namespace crossover
