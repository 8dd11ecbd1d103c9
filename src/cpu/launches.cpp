// SPDX-License-Identifier: Apache-2.0
#include "crossover/launches.h"

#include <variant>
#include <vector>

#include "../step/overload.h"

namespace crossover {
namespace {

/// An optimizer passes once over neighbours with the same decay, which lie together.
std::int64_t passes(const std::vector<double>& weight_decay) {
  std::int64_t count = weight_decay.empty() ? 0 : 1;
  for (std::size_t i = 1; i < weight_decay.size(); ++i) {
    count += weight_decay[i] != weight_decay[i - 1] ? 1 : 0;
  }
  return count;
}

std::int64_t launches(const Op& op) {
  return std::visit(
      Overload{
          [](const LinearGrad& o) -> std::int64_t {
            const bool masked = o.dx != none && o.x_activation != Activation::identity;
            return 1 + (o.dbias != none ? 1 : 0) + (o.dx != none ? 1 : 0) + (masked ? 1 : 0);
          },
          [](const Sgd& o) -> std::int64_t { return o.parameters.empty() ? 0 : 1; },
          [](const AdamW& o) { return 1 + passes(o.weight_decay); },  // its time, apart
          [](const auto&) -> std::int64_t { return 1; },
      },
      op);
}

}  // namespace

std::int64_t cpu_launches(const Workload& workload) {
  std::vector<std::int64_t> of_step;
  for (const Step& step : workload.steps) {
    of_step.push_back(0);
    for (const Op& op : step.ops) {
      of_step.back() += launches(op);
    }
  }
  std::int64_t sum = 0;
  for (const Run& run : workload.order) {
    sum += of_step[static_cast<std::size_t>(run.step)];
  }
  return sum;
}

}  // namespace crossover
