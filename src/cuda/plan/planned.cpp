// SPDX-License-Identifier: Apache-2.0
#include "planned.h"

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <utility>

#include "crossover/executions.h"
#include "crossover/training.h"
#include "narrow.h"
#include "plan.h"

namespace crossover {
namespace cuda {
namespace {

/// A weight that is updated in the product saves 8 bytes of traffic: its gradient is neither stored
/// nor read. Its layer loses the epilogue that sums the bias gradient, which becomes a launch: an
/// estimate of 2 us, in which 4.8 TB/s (an H200's memory by its data sheet) move 9.6 MB.
constexpr std::int64_t least_weights = std::int64_t{1} << 20;

bool has_convolutions(const Workload& workload) {
  return std::any_of(workload.steps.begin(), workload.steps.end(), [](const Step& step) {
    return std::any_of(step.ops.begin(), step.ops.end(),
                       [](const Op& op) { return category(op) == OpCategory::convolution; });
  });
}

}  // namespace

Description PlannedGpu::describe() const {
  return {.cache_bytes = 60 << 20,
          .memory_bytes = std::int64_t{80} << 30,
          .libraries = {{"gpu", "planned"}}};
}

std::string PlannedGpu::missing_for(Precision /*precision*/) const { return ""; }

Workload PlannedGpu::optimize(Workload workload, const CompileOptions& options) const {
  workload = narrow_gradients(fuse(std::move(workload)));
  // In 16 bits the optimizer also writes what products read; and one kernel for the whole order
  // takes all layers alike.
  const bool in_products = stored_precision(workload) == Precision::f32 &&
                           !facts_of(options.execution).in_one_kernel &&
                           options.execution != Execution::automatic;  // each way has its own
  return in_products ? fuse_update(std::move(workload), least_weights) : workload;
}

/// One kernel has to fit a GPU that has as much as any: plan() asks the device at hand. A tailored
/// one is for who asks for it, as no GPU has run it yet.
std::vector<Execution> PlannedGpu::executions(const Workload& workload, Precision precision) const {
  std::vector<Execution> all{Execution::eager, Execution::graph, Execution::graph_epoch};
  const CompileOptions persistent{.precision = precision, .execution = Execution::persistent};
  try {
    static_cast<void>(PlannedGpu::estimate(fuse(workload), persistent));
    all.push_back(Execution::persistent);
  } catch (const Unsupported&) {
  } catch (const std::overflow_error&) {  // no memory holds it
  }
  all.push_back(Execution::automatic);
  return all;
}

std::vector<Choice> PlannedGpu::choices(const Workload& workload,
                                        const CompileOptions& options) const {
  const bool as_a_whole = options.placement == Placement::resident && !options.loss_every_step &&
                          workload.order.size() > 1;
  std::vector<Choice> plain;
  for (const Execution execution : executions(workload, options.precision)) {
    if (execution == Execution::automatic || (!as_a_whole && facts_of(execution).of_whole_order)) {
      continue;
    }
    plain.push_back({.execution = execution,
                     .products = options.products,
                     .convolutions = options.convolutions});
  }
  std::vector<Choice> all = plain;
  std::reverse(plain.begin(), plain.end());
  for (const Choice& choice : plain) {
    Choice timed = choice;
    timed.products = ProductChoice::autotuned;
    if (has_convolutions(workload)) {
      timed.convolutions = ConvolutionChoice::benchmark;
    }
    if (!facts_of(choice.execution).in_one_kernel && timed != choice) {  // which calls no library
      all.push_back(timed);
    }
  }
  return all;
}

Estimate PlannedGpu::estimate(const Workload& workload, const CompileOptions& options) const {
  if (options.execution == Execution::automatic) {  // what is likely to win has as many
    CompileOptions likely = options;
    likely.execution = Execution::graph;
    return estimate(optimize(workload, likely), likely);
  }
  const LaunchPlan plan =
      make_plan(workload, options, [](const ProductForm& /*form*/) { return true; });
  const bool on_chip = plan.persistent && plan.persistent->is_on_chip();
  return {.launches = count_launches(workload, plan),
          .multiprocessors = on_chip ? plan.persistent->blocks : 0,
          .bytes = plan.bytes,
          .workspace_bytes = plan.workspace_bytes,
          .joins = plan.joins(),
          .copies = plan.networks.count};
}

std::unique_ptr<Plan> PlannedGpu::plan(const Workload& /*workload*/,
                                       const CompileOptions& /*options*/) const {
  throw Unsupported(reason_);
}

std::unique_ptr<Probe> PlannedGpu::make_probe(const ProbeSpec& /*spec*/) const {
  throw Unsupported(reason_);
}

}  // namespace cuda

std::unique_ptr<Backend> make_planned_gpu(const std::string& reason) {
  return std::make_unique<cuda::PlannedGpu>(reason);
}

}  // namespace crossover
