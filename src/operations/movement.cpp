// SPDX-License-Identifier: Apache-2.0
#include "crossover/operations/movement.h"

#include <algorithm>
#include <tuple>

#include "../reference/run.h"
#include "crossover/alive.h"
#include "fit.h"

namespace crossover {

namespace {

/// Whether all elements that steps of one side reach are in the tensor.
bool is_within(const CopiedBlock& block, std::int64_t first, std::int64_t BlockExtent::*step,
               const Shape& shape) {
  std::int64_t least = first;
  std::int64_t most = first;
  for (const BlockExtent& extent : block.extents) {
    const std::int64_t goes = (extent.count - 1) * extent.*step;
    (goes < 0 ? least : most) += goes;
  }
  const bool counts = std::all_of(block.extents.begin(), block.extents.end(),
                                  [](const BlockExtent& extent) { return extent.count > 0; });
  return counts && least >= 0 && most < elements(shape);
}

/// body(place in x, place in y) for each number of a block.
template <class Body>
void for_each_place(const CopiedBlock& block, const Body& body) {
  for_each_index(block.count(), [&](std::int64_t i) {
    std::int64_t rest = i;
    std::int64_t from = block.from_first;
    std::int64_t to = block.to_first;
    for (std::size_t e = block.extents.size(); e-- > 0;) {
      const BlockExtent& extent = block.extents[e];
      from += rest % extent.count * extent.from_step;
      to += rest % extent.count * extent.to_step;
      rest /= extent.count;
    }
    body(from, to);
  });
}

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

}  // namespace

void Rearrange::check(const Fit& fit) const {
  fit.require(!x.empty() && !y.empty(), "it has nothing to read, or nothing to write");
  const bool is_of_tokens = fit.at(x.front()).type == Type::i32;
  const Type type = is_of_tokens ? Type::i32 : fit.number(x.front());
  for (const std::vector<Id>& ids : {x, y}) {
    for (const Id id : ids) {
      fit.expect(id, fit.at(id).shape, type);
    }
  }
  std::vector<std::int64_t> written(y.size(), 0);
  for (const CopiedBlock& block : blocks) {
    const bool known = block.from >= 0 && index(block.from) < x.size() && block.to >= 0 &&
                       index(block.to) < y.size();
    fit.require(known, "a block is of no tensor that it has");
    const Tensor& from = fit.at(x[index(block.from)]);
    const Tensor& to = fit.at(y[index(block.to)]);
    for (const auto& [tensor, first, step] :
         {std::tuple{&from, block.from_first, &BlockExtent::from_step},
          std::tuple{&to, block.to_first, &BlockExtent::to_step}}) {
      fit.require(is_within(block, first, step, tensor->shape),
                  "a block goes beyond tensor '" + tensor->name + "' " + to_string(tensor->shape));
    }
    written[index(block.to)] += block.count();
    fit.require(written[index(block.to)] <= elements(to.shape),
                "blocks meet in tensor '" + to.name + "' " + to_string(to.shape));
  }
}

Cost Rearrange::cost(const Workload& /*workload*/) const { return {.launches = 1}; }

void Rearrange::execute(ReferenceRun& run) const {
  for (const Id id : y) {
    std::fill_n(run.at(id), run.size(id), 0.0);
  }
  for (const CopiedBlock& block : blocks) {
    const double* from = run.at(x[index(block.from)]);
    double* to = run.at(y[index(block.to)]);
    for_each_place(block, [&](std::int64_t read, std::int64_t write) { to[write] = from[read]; });
  }
}

bool Rearrange::fills(std::size_t to, std::int64_t elements) const {
  std::int64_t reached = 0;
  for (const CopiedBlock& block : blocks) {
    reached += index(block.to) == to ? block.count() : 0;
  }
  return reached == elements;
}

void Reshape::check(const Fit& fit) const {
  fit.require(elements(fit.at(x).shape) == elements(fit.at(y).shape),
              "'" + fit.at(x).name + "' " + to_string(fit.at(x).shape) + " and '" + fit.at(y).name +
                  "' " + to_string(fit.at(y).shape) + " have different numbers of elements");
  fit.expect(y, fit.at(y).shape, fit.number(x));
}

Cost Reshape::cost(const Workload& /*workload*/) const { return {.launches = 1}; }

void Reshape::execute(ReferenceRun& run) const { std::copy_n(run.at(x), run.size(x), run.at(y)); }

void Cast::check(const Fit& fit) const {
  const Type from = fit.number(x);
  const Type to = fit.number(y);
  fit.expect(y, fit.at(x).shape, to);
  fit.require(from != to && (from == Type::f32 || to == Type::f32),
              "from '" + fit.at(x).name + "' to '" + fit.at(y).name + "', from " + to_string(from) +
                  " to " + to_string(to) + ": one of two different types must be f32");
}

Cost Cast::cost(const Workload& /*workload*/) const { return {.launches = 1}; }

void Cast::execute(ReferenceRun& run) const { std::copy_n(run.at(x), run.size(x), run.at(y)); }

void Zero::check(const Fit& fit) const {
  fit.require(!tensors.empty(), "no tensors to set to zero");
  for (const Id id : tensors) {
    fit.expect(id, fit.at(id).shape);
  }
}

Cost Zero::cost(const Workload& /*workload*/) const { return {.launches = 1}; }

void Zero::execute(ReferenceRun& run) const {
  for (const Id id : tensors) {
    std::fill_n(run.at(id), run.size(id), 0.0);
  }
}

}  // namespace crossover
