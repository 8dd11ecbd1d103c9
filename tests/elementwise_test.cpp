// SPDX-License-Identifier: Apache-2.0
// Formulas that a device takes in float, against the same in more digits.
#include "crossover/elementwise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace crossover::test {
namespace {

TEST(AdamWClock, StaysRightForAMillionSteps) {
  for (const double beta : {0.0, 0.5, 0.9, 0.999, 0.99999}) {
    const AdamWConstants constants{.learning_rate = 1e-3, .beta1 = beta, .beta2 = beta};
    const AdamWClock<float> clock{.learning_rate = static_cast<float>(constants.learning_rate),
                                  .log_beta1 = static_cast<float>(std::log(beta)),
                                  .log_beta2 = static_cast<float>(std::log(beta))};
    double step_size = 0;
    double root = 0;
    for (int t = 1; t <= 1'000'000; ++t) {
      AdamWFactors<float> f{};
      set_time(f, clock, t);
      const double correction = -std::expm1(t * std::log(beta));
      step_size =
          std::max(step_size, std::abs(f.step_size * correction / constants.learning_rate - 1));
      root = std::max(root, std::abs(f.inverse_root_correction * std::sqrt(correction) - 1));
    }
    EXPECT_LE(step_size, 4e-7) << beta;  // seven roundings of 2^-24
    EXPECT_LE(root, 3e-7) << beta;
  }
}

}  // namespace
}  // namespace crossover::test
