// SPDX-License-Identifier: Apache-2.0
// Shapes, types and roles of a Workload, checked before anything is computed with it.
#include <algorithm>
#include <stdexcept>
#include <variant>
#include <vector>

#include "../operations/fit.h"
#include "crossover/step.h"
#include "crossover/training.h"

namespace crossover {
namespace {

void check_tensors(const Workload& workload) {
  const Fit fit(workload, "tensors");
  for (const Tensor& tensor : workload.tensors) {
    for (const std::int64_t extent : tensor.shape) {
      fit.require(extent > 0,
                  "tensor '" + tensor.name + "' has a size below one: " + to_string(tensor.shape));
    }
    if (tensor.role == Role::input) {
      const Tensor& source = fit.at(tensor.source);
      fit.require(
          source.role == Role::data && source.type == tensor.type &&
              source.shape.size() == tensor.shape.size() && !tensor.shape.empty() &&
              std::equal(source.shape.begin() + 1, source.shape.end(), tensor.shape.begin() + 1),
          "'" + tensor.name + "' " + to_string(tensor.shape) + " is not a batch of rows of '" +
              source.name + "' " + to_string(source.shape));
    }
  }
}

void check_order(const Workload& workload) {
  const Fit fit(workload, "order");
  std::vector<std::vector<Id>> views;  // by step: an order has far more runs than steps
  for (const Step& step : workload.steps) {
    views.push_back(views_of(workload, step));
  }
  for (const Run& run : workload.order) {
    const auto step = static_cast<std::size_t>(run.step);
    fit.require(run.step >= 0 && step < workload.steps.size(), "no such step");
    for (const Id id : views[step]) {
      const Tensor& view = workload[id];
      fit.require(
          run.first_row >= 0 && run.first_row + view.shape[0] <= fit.at(view.source).shape[0],
          "a run reads beyond the rows of '" + view.name + "'");
    }
  }
}

}  // namespace

void check(const Workload& workload) {
  check_tensors(workload);
  for (const Step& step : workload.steps) {
    for (const Op& op : step.ops) {
      std::visit([fit = Fit(workload, name(op))](const auto& operation) { operation.check(fit); },
                 op);
    }
  }
  check_order(workload);
  if (workload.epoch != none) {
    const Tensor& epoch = Fit(workload, "order").at(workload.epoch);
    Fit(workload, "order")
        .require(epoch.role == Role::state && epoch.type == Type::i32 && epoch.shape == Shape{1},
                 "'" + epoch.name + "' does not count epochs");
  }
}

Precision stored_precision(const Workload& workload) {
  const auto stores = [&](Type type) {
    return std::any_of(workload.tensors.begin(), workload.tensors.end(),
                       [&](const Tensor& tensor) { return tensor.type == type; });
  };
  if (stores(Type::bf16) && stores(Type::f16)) {
    throw std::invalid_argument("tensors: a workload stores bf16 or f16, not both");
  }
  return stores(Type::bf16) ? Precision::bf16 : stores(Type::f16) ? Precision::f16 : Precision::f32;
}

void check(const Workload& workload, Precision precision) {
  check(workload);
  if (workload.epoch != none) {
    throw std::invalid_argument("a workload that shuffles its rows is compiled by a loader");
  }
  const Precision stored = stored_precision(workload);
  if (stored != (precision == Precision::tf32 ? Precision::f32 : precision)) {
    throw std::invalid_argument("a workload that stores " + to_string(stored) +
                                " can't be compiled for " + to_string(precision));
  }
}

}  // namespace crossover
