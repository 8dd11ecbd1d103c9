// SPDX-License-Identifier: Apache-2.0
#include "share.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "crossover/shared_training.h"

namespace crossover {

namespace {

/// Calls visit(first_row, batch) for each step of the whole training.
template <class Visit>
void for_each_batch(const TrainingOptions& share, const Visit& visit) {
  for (std::int64_t first = 0; first < share.rows; first += share.batch) {
    visit(first, std::min(share.batch, share.rows - first));
  }
}

/// Appends a rank's rows of the batch that begins at `first`.
void take_rows(std::int64_t first, std::int64_t batch, int rank, int ranks,
               std::vector<std::int64_t>& rows) {
  for (std::int64_t row = rank; row < batch; row += ranks) {
    rows.push_back(first + row);
  }
}

template <class T>
std::vector<T> picked(const std::vector<T>& values, std::int64_t all,
                      const std::vector<std::int64_t>& rows) {
  const std::size_t width = values.size() / static_cast<std::size_t>(all);
  std::vector<T> found;
  found.reserve(width * rows.size());
  for (const std::int64_t row : rows) {
    const auto from = values.begin() + row * static_cast<std::ptrdiff_t>(width);
    found.insert(found.end(), from, from + static_cast<std::ptrdiff_t>(width));
  }
  return found;
}

/// The rank's own.
std::vector<float> multiplied(const Ranks& ranks, std::span<const std::byte> from) {
  std::vector<float> values(from.size() / sizeof(float));
  std::memcpy(values.data(), from.data(), from.size());
  for (float& value : values) {
    value *= static_cast<float>(ranks.rank() + 1);
  }
  return values;
}

/// The ranks' sum of one tensor, by itself, in the host's memory.
class SumProgram : public Program {
 public:
  SumProgram(Ranks& ranks, std::int64_t floats)
      : ranks_(ranks), values_(static_cast<std::size_t>(floats)) {}

  void upload(Id /*id*/, std::span<const std::byte> from) override {
    values_ = multiplied(ranks_, from);
  }
  void download(Id /*id*/, std::span<std::byte> to) override {
    std::memcpy(to.data(), values_.data(), to.size());
  }
  void enqueue(std::int64_t /*first*/, std::int64_t /*count*/) override { ranks_.sum(values_); }
  void wait() override {}
  Profile profile() override { return {}; }

 private:
  Ranks& ranks_;
  std::vector<float> values_;
};

/// The same as a Program of the GPU.
class SumOnGpu : public Program {
 public:
  SumOnGpu(Ranks& ranks, std::unique_ptr<Program> sum)
      : Program(sum->facts()), ranks_(ranks), sum_(std::move(sum)) {}

  void upload(Id id, std::span<const std::byte> from) override {
    const std::vector<float> values = multiplied(ranks_, from);
    sum_->upload(id, std::as_bytes(std::span(values)));
  }
  void download(Id id, std::span<std::byte> to) override { sum_->download(id, to); }
  void enqueue(std::int64_t first, std::int64_t count) override { sum_->enqueue(first, count); }
  void wait() override { sum_->wait(); }
  Profile profile() override { return sum_->profile(); }

 private:
  Ranks& ranks_;
  std::unique_ptr<Program> sum_;
};

}  // namespace

std::vector<std::int64_t> rows_of_rank(const TrainingOptions& share) {
  std::vector<std::int64_t> rows;
  for_each_batch(share, [&](std::int64_t first, std::int64_t batch) {
    take_rows(first, batch, share.rank, share.ranks, rows);
  });
  return rows;
}

Dataset picked(const Dataset& all, const std::vector<std::int64_t>& rows) {
  return {.source = all.source,
          .sample = all.sample,
          .rows = std::ssize(rows),
          .inputs = picked(all.inputs, all.rows, rows),
          .labels = picked(all.labels, all.rows, rows),
          .targets = picked(all.targets, all.rows, rows)};
}

Dataset rows_in_turn(const Dataset& rows, const TrainingOptions& whole) {
  std::vector<std::int64_t> order;
  for_each_batch(whole, [&](std::int64_t first, std::int64_t batch) {
    for (int rank = 0; rank < whole.ranks; ++rank) {
      take_rows(first, batch, rank, whole.ranks, order);
    }
  });
  return picked(rows, order);
}

std::vector<double> weights_of(const TrainingOptions& share) {
  std::vector<double> weights;
  for_each_batch(share, [&](std::int64_t /*first*/, std::int64_t batch) {
    weights.push_back(static_cast<double>(rows_of_rank(batch, share.rank, share.ranks)) /
                      static_cast<double>(batch));
  });
  return weights;
}

Share::Share(const Backend& backend, const Model& model, const TrainingOptions& share,
             const CompileOptions& options)
    : workload_(backend.optimize(training_epoch(model, share), options)),
      rows_(rows_of_rank(share)),
      plan_(backend.plan(workload_, options)) {}

void Share::upload(Id id, std::span<const std::byte> whole) {
  const Tensor& own = workload_[id];
  if (own.role != Role::data) {
    program_->upload(id, whole);
    return;
  }
  std::vector<std::byte> part(static_cast<std::size_t>(bytes(own)));
  const std::size_t row_bytes = part.size() / rows_.size();
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const auto from = whole.subspan(static_cast<std::size_t>(rows_[i]) * row_bytes, row_bytes);
    std::copy(from.begin(), from.end(), part.begin() + static_cast<std::ptrdiff_t>(i * row_bytes));
  }
  program_->upload(id, part);
}

std::vector<std::byte> Share::download(Id id) {
  std::vector<std::byte> stored(static_cast<std::size_t>(bytes(workload_[id])));
  program_->download(id, stored);
  return stored;
}

std::unique_ptr<Share> sum_of(Ranks& ranks, std::int64_t floats, const Backend* gpu) {
  Workload workload{.tensors = {{.name = "sum", .shape = {floats}, .role = Role::state}},
                    .steps = {{}},
                    .order = {{}}};
  if (gpu == nullptr) {
    return std::make_unique<Share>(std::move(workload),
                                   std::make_unique<SumProgram>(ranks, floats));
  }
  workload.steps[0].ops.emplace_back(AllReduce{.tensors = {0}, .ranks = ranks.size()});
  auto sum = std::make_unique<SumOnGpu>(ranks, gpu->compile(workload, {.ranks = &ranks}));
  return std::make_unique<Share>(std::move(workload), std::move(sum));
}

}  // namespace crossover
