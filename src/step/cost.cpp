// SPDX-License-Identifier: Apache-2.0
#include "crossover/cost.h"

#include <set>

#include <numeric>

#include "overload.h"

namespace crossover {
namespace {

double activation_flops(Activation activation) {
  switch (activation) {
    case Activation::identity:
      return 0;
    case Activation::relu:
      return 1;
    case Activation::sigmoid:
      return 4;
  }
  return 0;
}

double derivative_flops(Activation activation) {
  switch (activation) {
    case Activation::identity:
      return 0;
    case Activation::relu:
      return 1;
    case Activation::sigmoid:
      return 3;
  }
  return 0;
}

}  // namespace

Cost& Cost::operator+=(const Cost& other) {
  flops += other.flops;
  bytes += other.bytes;
  launches += other.launches;
  return *this;
}

Cost cost(const Workload& workload, const Op& op) {
  const auto count = [&](Id id) {
    return id == none ? 0.0 : static_cast<double>(elements(workload[id].shape));
  };
  const auto total = [&](const std::vector<Id>& ids) {
    return std::accumulate(ids.begin(), ids.end(), 0.0,
                           [&](double sum, Id id) { return sum + count(id); });
  };
  // A matrix product with weights: each value of the result side meets each weight of its row once.
  const auto product = [&](Id x, Id w) {
    return 2.0 * static_cast<double>(leading(workload[x].shape)) * count(w);
  };

  Cost cost = std::visit(
      Overload{
          [&](const Linear& o) {
            const bool activated = o.activation != Activation::identity;
            return Cost{.flops = product(o.x, o.w) + (o.bias != none ? count(o.y) : 0) +
                                 activation_flops(o.activation) * count(o.y),
                        .launches = activated ? 2 : 1};
          },
          [&](const LinearGrad& o) {
            Cost c{.flops = product(o.x, o.w), .launches = 1};
            if (o.accumulate) {
              c += {.flops = count(o.dw) + count(o.dbias), .launches = o.dbias != none ? 2 : 1};
            }
            if (o.dbias != none) {
              c += {.flops = count(o.dy), .launches = 1};
            }
            if (o.dx != none) {
              c += {.flops = product(o.x, o.w) + derivative_flops(o.x_activation) * count(o.dx),
                    .launches = o.x_activation != Activation::identity ? 2 : 1};
            }
            return c;
          },
          [&](const Cast&) { return Cost{.launches = 1}; },
          [&](const Activate& o) {
            return Cost{.flops = activation_flops(o.activation) * count(o.y), .launches = 1};
          },
          [&](const ActivateGrad& o) {
            return Cost{.flops = derivative_flops(o.activation) * count(o.dx), .launches = 1};
          },
          [&](const Add& o) { return Cost{.flops = count(o.y), .launches = 1}; },
          [&](const SoftmaxCrossEntropy& o) {
            return Cost{.flops = 5 * count(o.logits) + 2 * count(o.labels), .launches = 2};
          },
          [&](const Sgd& o) {
            return Cost{.flops = 2 * total(o.parameters),
                        .launches = static_cast<std::int64_t>(o.parameters.size())};
          },
          [&](const AdamW& o) {
            return Cost{.flops = 14 * total(o.parameters),
                        .launches = static_cast<std::int64_t>(o.parameters.size())};
          },
          [&](const Gemm& o) {
            const auto k = static_cast<double>(workload[o.a].shape[o.transpose_a ? 0 : 1]);
            return Cost{.flops = 2 * count(o.c) * k, .launches = 1};
          },
      },
      op);

  const Operands used = operands(op);
  for (const auto* ids : {&used.reads, &used.writes}) {
    for (const Id id : *ids) {
      // Of the losses, an operation touches its run's one element.
      const double touched = workload[id].role == Role::loss ? 1 : count(id);
      cost.bytes += touched * static_cast<double>(bytes(workload[id].type));
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

Cost cost(const Workload& workload) {
  std::vector<Cost> of_step;
  of_step.reserve(workload.steps.size());
  for (const Step& step : workload.steps) {
    of_step.push_back(cost(workload, step));
  }
  Cost sum;
  for (const Run& run : workload.order) {
    sum += of_step[static_cast<std::size_t>(run.step)];
  }
  return sum;
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

}  // namespace crossover
