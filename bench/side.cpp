// SPDX-License-Identifier: Apache-2.0
#include "side.h"

namespace crossover::bench {

Side cpu_side(Devices& devices, int threads, Precision precision) {
  return {.device = &devices.cpu,
          .options = {.threads = threads, .precision = precision},
          .configuration = {{"device", "cpu"},
                            {"execution", "eager"},
                            {"cpu_threads", std::to_string(threads)}},
          .quality = doubts_about_threads(threads)};
}

std::vector<Side> gpu_sides(const Arguments& arguments, Devices& devices,
                            const CompileOptions& options, const Configuration& mode) {
  std::vector<Side> sides;
  if (!devices.gpu) {
    return sides;
  }
  for (const ProductChoice products : arguments.products) {
    Side side{.device = &*devices.gpu,
              .options = options,
              .configuration = {{"device", devices.gpu->name()}},
              .quality = {}};
    side.options.products = products;
    side.configuration.insert(side.configuration.end(), mode.begin(), mode.end());
    if (products != ProductChoice::heuristic) {
      side.configuration.emplace_back("products", to_string(products));
    }
    sides.push_back(std::move(side));
  }
  return sides;
}

}  // namespace crossover::bench
