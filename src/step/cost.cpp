// SPDX-License-Identifier: Apache-2.0
#include "crossover/cost.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <stdexcept>
#include <string>
#include <variant>

#include "crossover/product.h"

namespace crossover {

Cost& Cost::operator+=(const Cost& other) {
  flops += other.flops;
  avoidable_flops += other.avoidable_flops;
  bytes += other.bytes;
  launches += other.launches;
  return *this;
}

Cost cost(const Workload& workload, const Op& op) {
  Cost cost = std::visit([&](const auto& operation) { return operation.cost(workload); }, op);
  const Operands used = operands(op);
  for (const auto* ids : {&used.reads, &used.writes}) {
    for (const Id id : *ids) {
      // Of the losses, an operation touches its run's one element.
      const Tensor& tensor = workload[id];
      const std::int64_t touched = tensor.role == Role::loss ? 1 : elements(tensor.shape);
      cost.bytes += static_cast<double>(touched) * static_cast<double>(bytes(tensor.type));
    }
  }
  return cost;
}

Cost cost(const Workload& workload, const Step& step) {
  Cost sum;
  for (const Op& op : step.ops) {
    sum += cost(workload, op);
  }
  return sum;
}

namespace {

/// Over the order: an order has far more runs than steps.
template <class Of>
auto sum_over_order(const Workload& workload, const Of& of) {
  std::vector<decltype(of(workload.steps.front()))> of_step;
  std::transform(workload.steps.begin(), workload.steps.end(), std::back_inserter(of_step), of);
  decltype(of(workload.steps.front())) sum{};
  for (const Run& run : workload.order) {
    sum += of_step[static_cast<std::size_t>(run.step)];
  }
  return sum;
}

}  // namespace

Cost cost(const Workload& workload) {
  return sum_over_order(workload, [&](const Step& step) { return cost(workload, step); });
}

std::int64_t footprint_bytes(const Workload& workload, const Step& step) {
  std::set<Id> touched;
  for (const Op& op : step.ops) {
    const Operands used = operands(op);
    touched.insert(used.reads.begin(), used.reads.end());
    touched.insert(used.writes.begin(), used.writes.end());
  }
  std::int64_t sum = 0;
  for (const Id id : touched) {
    sum += bytes(workload[id]);
  }
  return sum;
}

std::int64_t product_count(const Workload& workload) {
  return sum_over_order(workload, [&](const Step& step) {
    std::int64_t count = 0;
    for (const Op& op : step.ops) {
      count += std::ssize(products_of(workload, op));
    }
    return count;
  });
}

Workload product_workload(const ProductSize& size, std::int64_t sets, std::int64_t products) {
  if (sets < 1 || products < 1) {
    throw std::invalid_argument("a product needs one operand set and one turn at least");
  }
  const Shape a = size.transpose_a ? Shape{size.k, size.m} : Shape{size.m, size.k};
  const Shape b = size.transpose_b ? Shape{size.n, size.k} : Shape{size.k, size.n};
  Workload workload;
  const auto tensor = [&](const char* name, std::int64_t set, const Shape& shape, Role role) {
    return workload.add({.name = std::string(name).append(std::to_string(set)),
                         .shape = shape,
                         .type = size.type,
                         .role = role});
  };
  for (std::int64_t set = 0; set < sets; ++set) {
    const Id left = tensor("a", set, a, Role::data);
    const Id right = tensor("b", set, b, Role::data);
    const Id result = tensor("c", set, {size.m, size.n}, Role::state);
    workload.steps.push_back({{Gemm{.a = left,
                                    .b = right,
                                    .c = result,
                                    .transpose_a = size.transpose_a,
                                    .transpose_b = size.transpose_b}}});
  }
  for (std::int64_t turn = 0; turn < products; ++turn) {
    workload.order.push_back({.step = static_cast<int>(turn % sets)});
  }
  return workload;
}

std::int64_t cold_sets(std::int64_t set_bytes, std::int64_t cache_bytes) {
  constexpr std::int64_t times = 4;
  constexpr std::int64_t fewest = 2;
  return std::max(fewest, (times * cache_bytes + set_bytes - 1) / set_bytes);
}

}  // namespace crossover
