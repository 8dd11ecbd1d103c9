// SPDX-License-Identifier: Apache-2.0
#include "arithmetic.h"

namespace crossover::bench {

void tell_arithmetic(const Arithmetic& arithmetic, Precision precision,
                     nlohmann::ordered_json& verification) {
  if (precision == Precision::tf32) {
    verification["tf32_factors"] = to_string(arithmetic.tf32);
  }
  if (arithmetic.relu_passes_zero) {
    verification["relu_passes_zero"] = true;
  }
}

}  // namespace crossover::bench
