// SPDX-License-Identifier: Apache-2.0
#include "crossover/reference.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>
#include <variant>

#include "crossover/alive.h"
#include "crossover/float16.h"
#include "crossover/random.h"
#include "crossover/training.h"
#include "run.h"

namespace crossover {

double* ReferenceRun::at(Id id) {
  const Tensor& tensor = workload_[id];
  if (tensor.role == Role::input && workload_.epoch == none) {
    const std::int64_t row = elements(tensor.shape) / tensor.shape[0];
    return values_[static_cast<std::size_t>(tensor.source)].data() + first_row_ * row;
  }
  return values_[static_cast<std::size_t>(id)].data();
}

double ReferenceRun::stored(Id id, double value) const {
  return stored_as(workload_[id].type, value);
}

void ReferenceRun::sum_over_ranks(Id id) {
  if (!sum_) {
    throw std::logic_error("this reference sums over ranks, and has none");
  }
  sum_({at(id), static_cast<std::size_t>(size(id))});
}

void ReferenceRun::store(const Op& op) {
  for (const Id id : operands(op).writes) {
    if (!is_16_bit(workload_[id].type)) {
      continue;
    }
    double* values = at(id);
    const std::int64_t count = size(id);
#pragma omp parallel for schedule(static) if (count > 100000)
    for (std::int64_t i = 0; i < count; ++i) {
      values[i] = stored(id, values[i]);
    }
  }
}

namespace {

/// By tensor: of those of activations only what an operation uses; of views only those into which
/// rows are brought in an order of their own.
std::vector<std::int64_t> counts(const Workload& workload) {
  std::vector<std::int64_t> all(workload.tensors.size());
  const auto count = [&](Id id) {
    const auto i = static_cast<std::size_t>(id);
    const Tensor& tensor = workload.tensors[i];
    const bool is_read_in_place = tensor.role == Role::input && workload.epoch == none;
    all[i] = is_read_in_place ? 0 : elements(tensor.shape);
  };
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (workload.tensors[i].role != Role::activation &&
        workload.tensors[i].role != Role::gradient) {
      count(static_cast<Id>(i));
    }
  }
  for (const Step& step : workload.steps) {
    for (const Op& op : step.ops) {
      const Operands used = operands(op);
      std::for_each(used.reads.begin(), used.reads.end(), count);
      std::for_each(used.writes.begin(), used.writes.end(), count);
    }
  }
  return all;
}

}  // namespace

Reference::Reference(Workload workload, SumOverRanks sum)
    : workload_(std::move(workload)), sum_(std::move(sum)) {
  check(workload_);
  for (const std::int64_t count : counts(workload_)) {
    values_.emplace_back(static_cast<std::size_t>(count));
  }
}

std::span<double> Reference::operator[](Id id) { return values_.at(static_cast<std::size_t>(id)); }

std::span<const double> Reference::read(Id id, std::int64_t position) {
  ReferenceRun run(workload_, values_, position, sum_);
  return {run.at(id), static_cast<std::size_t>(run.size(id))};
}

void Reference::run(std::int64_t first, std::int64_t count) {
  for (std::int64_t position = first; position < first + count; ++position) {
    if (workload_.epoch != none) {
      bring_rows(position);
    }
    for (std::size_t i = 0; i < workload_.step_at(position).ops.size(); ++i) {
      run_operation(position, i);
    }
    if (workload_.epoch != none && position + 1 == std::ssize(workload_.order)) {
      ++(*this)[workload_.epoch].front();
    }
  }
}

/// Those of its batch, in the epoch's order.
void Reference::bring_rows(std::int64_t position) {
  const Run& run = workload_.order[static_cast<std::size_t>(position)];
  const auto epoch = static_cast<std::int32_t>((*this)[workload_.epoch].front());
  for (const Id view : views_of(workload_, workload_.step_at(position))) {
    const Tensor& source = workload_[workload_[view].source];
    const Shuffle order(source.shape.front(), epoch);
    const auto row = elements(source.shape) / source.shape.front();
    const auto from = (*this)[workload_[view].source].begin();
    auto to = (*this)[view].begin();
    for (std::int64_t i = 0; i < workload_[view].shape.front(); ++i, to += row) {
      std::copy_n(from + order[run.first_row + i] * row, row, to);
    }
  }
}

void Reference::run_operation(std::int64_t position, std::size_t operation) {
  ReferenceRun run(workload_, values_, position, sum_);
  const Op& op = workload_.step_at(position).ops[operation];
  std::visit([&](const auto& one) { one.execute(run); }, op);
  run.store(op);
  alive();
}

std::int64_t reference_bytes(const Workload& workload) {
  const std::vector<std::int64_t> all = counts(workload);
  return std::accumulate(all.begin(), all.end(), std::int64_t{0}) *
         static_cast<std::int64_t>(sizeof(double));
}

}  // namespace crossover
