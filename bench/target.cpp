// SPDX-License-Identifier: Apache-2.0
#include "target.h"

namespace crossover::bench {

Target cpu_target(Devices& devices, int threads, Precision precision) {
  return {.device = &devices.cpu,
          .options = {.threads = threads, .precision = precision},
          .configuration = {{"device", "cpu"},
                            {"execution", "eager"},
                            {"cpu_threads", std::to_string(threads)}},
          .quality = doubts_about_threads(threads)};
}

std::vector<Target> gpu_targets(const Arguments& arguments, Devices& devices,
                                const CompileOptions& options, const Configuration& mode) {
  std::vector<Target> targets;
  if (!devices.gpu) {
    return targets;
  }
  for (const ProductChoice products : arguments.products) {
    Target target{.device = &*devices.gpu,
                  .options = options,
                  .configuration = {{"device", devices.gpu->name()}},
                  .quality = {}};
    target.options.products = products;
    target.configuration.insert(target.configuration.end(), mode.begin(), mode.end());
    if (products != ProductChoice::heuristic) {
      target.configuration.emplace_back("products", to_string(products));
    }
    targets.push_back(std::move(target));
  }
  return targets;
}

}  // namespace crossover::bench
