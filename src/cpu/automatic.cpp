// SPDX-License-Identifier: Apache-2.0
#include "automatic.h"

#include <algorithm>

#include "../automatic/automatic.h"
#include "crossover/cost.h"
#include "crossover/dense_training.h"
#include "crossover/training.h"
#include "fused/plan.h"
#include "plan.h"

namespace crossover::cpu {

std::vector<Execution> executions_of(const Workload& workload) {
  if (cost(workload).avoidable_flops > 0) {
    return {Execution::eager, Execution::winograd, Execution::automatic};
  }
  try {
    static_cast<void>(dense_training(workload));
    return {Execution::eager, Execution::fused, Execution::automatic};
  } catch (const Unsupported&) {
    return {Execution::eager};
  }
}

std::unique_ptr<Plan> plan_automatic(const Workload& workload, const CompileOptions& options) {
  const auto shared = std::make_shared<const Workload>(workload);
  const std::vector<Execution> all = executions_of(workload);
  const auto has = [&](Execution execution) {
    return std::find(all.begin(), all.end(), execution) != all.end();
  };
  std::vector<Way> ways;
  const auto add = [&](Execution execution, int threads) {
    if (!has(execution)) {
      return;
    }
    CompileOptions own = options;
    own.execution = execution;
    own.threads = threads;
    ways.push_back({{execution, threads}, [shared, own]() -> std::unique_ptr<Plan> {
                      if (own.execution == Execution::fused) {
                        return plan_fused(*shared, own);
                      }
                      return std::make_unique<CpuPlan>(*shared, own);
                    }});
  };
  if (has(Execution::winograd)) {  // long steps, in which all threads pay
    add(Execution::eager, options.threads);
    add(Execution::winograd, options.threads);
  } else {
    add(Execution::eager, 1);
    add(Execution::fused, 1);
    if (options.threads > 1) {
      add(Execution::fused, options.threads);
      add(Execution::eager, options.threads);
    }
  }
  return std::make_unique<AutomaticPlan>(
      ways, Trials{.runs = std::ssize(workload.order)},
      [shared](Program& program) {  // what training has changed; the rest each step computes anew
        clear(program, *shared, {Role::parameter, Role::gradient, Role::state, Role::loss});
      });
}

}  // namespace crossover::cpu
