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

}  // namespace crossover::bench
