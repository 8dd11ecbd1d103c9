// SPDX-License-Identifier: Apache-2.0
#include "gpu_variants.h"

namespace crossover::test {

const std::vector<GpuVariant>& gpu_variants() {
  static const std::vector<GpuVariant> only{{.name = "hardware"}};
  return only;
}

}  // namespace crossover::test
