// SPDX-License-Identifier: Apache-2.0
#include "ceilings.h"

#include <algorithm>
#include <vector>

namespace crossover::bench {

void Ceilings::raise(Ceiling ceiling, const std::string& device, Precision precision, int threads,
                     double per_second) {
  const Precision of = ceiling == Ceiling::flops_per_second ? precision : Precision::f32;
  double& highest = per_second_[{ceiling, device, of, threads}];
  highest = std::max(highest, per_second);
}

std::optional<double> Ceilings::find(Ceiling ceiling, const std::string& device,
                                     Precision precision, int threads) const {
  const Precision of = ceiling == Ceiling::flops_per_second ? precision : Precision::f32;
  const auto at = per_second_.find({ceiling, device, of, threads});
  if (at == per_second_.end() || at->second <= 0) {
    return std::nullopt;
  }
  return at->second;
}

std::optional<Bound> Ceilings::bound(const MinimumWork& least) const {
  const auto seconds = [&](Ceiling ceiling, double amount) -> std::optional<double> {
    const std::optional<double> per_second =
        find(ceiling, least.device, least.precision, least.threads);
    return per_second ? std::optional(amount / *per_second) : std::nullopt;
  };
  const auto compute = seconds(Ceiling::flops_per_second, least.flops);
  const auto memory = seconds(Ceiling::memory_bytes_per_second, least.memory_bytes);
  if ((least.flops > 0 && !compute) || (least.memory_bytes > 0 && !memory)) {
    return std::nullopt;
  }
  const double copy =
      seconds(Ceiling::bytes_per_second_to_device, least.bytes_to_device).value_or(0) +
      seconds(Ceiling::bytes_per_second_from_device, least.bytes_from_device).value_or(0);
  const Ceiling launches =
      least.graph ? Ceiling::graph_nodes_per_second : Ceiling::launches_per_second;
  const double launch = seconds(launches, least.launches).value_or(0);
  const std::vector<Bound> all{{"compute", compute.value_or(0)},
                               {"memory", memory.value_or(0)},
                               {"copy", copy},
                               {"launch", launch}};
  const auto largest = std::max_element(
      all.begin(), all.end(), [](const Bound& a, const Bound& b) { return a.seconds < b.seconds; });
  return largest->seconds > 0 ? std::optional(*largest) : std::nullopt;
}

}  // namespace crossover::bench
