// SPDX-License-Identifier: Apache-2.0
#include "rows/minimum_work.h"

#include <algorithm>
#include <vector>

namespace crossover::bench {

std::int64_t input_bytes(const Workload& workload, const Step& step) {
  std::int64_t sum = 0;
  for (const Id id : views_of(workload, step)) {
    sum += bytes(workload[id]);
  }
  return sum;
}

MinimumWork minimum_work_of(const Workload& workload, const Cost& counted, const Program& program,
                            const CompileOptions& options, const Device& device) {
  const bool on_cpu = device.is_host;
  MinimumWork least{.flops = counted.flops};
  if (options.precision == Precision::f32) {
    least.flops -= counted.avoidable_flops;
  }
  std::vector<double> memory;
  std::vector<double> copied;
  for (const Step& step : workload.steps) {
    const std::int64_t beyond_cache = footprint_bytes(workload, step) - device.cache_bytes;
    memory.push_back(static_cast<double>(std::max<std::int64_t>(0, beyond_cache)));
    copied.push_back(options.placement == Placement::resident
                         ? 0
                         : static_cast<double>(input_bytes(workload, step)));
  }
  for (const Run& run : workload.order) {
    least.memory_bytes += memory[static_cast<std::size_t>(run.step)];
    least.bytes_to_device += copied[static_cast<std::size_t>(run.step)];
  }
  if (options.loss_every_step && !on_cpu) {
    least.bytes_from_device = static_cast<double>(workload.order.size() * sizeof(float));
  }
  if (!on_cpu) {  // a CPU's calls cost too little, and too unlike each other, for a ceiling
    least.launches = static_cast<double>(program.facts().launches);
    least.graph =
        options.execution == Execution::graph || options.execution == Execution::graph_epoch;
  }
  return least;
}

}  // namespace crossover::bench
