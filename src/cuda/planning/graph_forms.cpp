// SPDX-License-Identifier: Apache-2.0
#include "graph_forms.h"

namespace crossover::cuda {

std::vector<GraphForm> graph_forms(const Workload& workload, const LaunchPlan& largest) {
  constexpr std::int64_t most_nodes = 20'000;  // a larger graph takes seconds to instantiate
  const bool may_loop = !largest.loops.empty();
  const bool may_unroll = !may_loop || count_launches(workload, largest) <= most_nodes;
  std::vector<GraphForm> forms;
  for (const bool loops : {false, true}) {
    if (loops ? !may_loop : !may_unroll) {
      continue;
    }
    forms.push_back({.loops = loops, .streams = 1});
    if (largest.forks()) {
      forms.push_back({.loops = loops, .streams = 2});
    }
  }
  return forms;
}

GraphForm fastest_of(const std::vector<GraphForm>& forms,
                     const std::function<bool(const GraphForm&)>& beats) {
  GraphForm best = forms.front();
  if (forms.size() == 1) {
    return best;
  }
  for (const GraphForm& form : forms) {
    try {
      if (beats(form)) {
        best = form;
      }
    } catch (const OutOfMemory&) {
    } catch (const Unsupported&) {
    }
  }
  return best;
}

}  // namespace crossover::cuda
