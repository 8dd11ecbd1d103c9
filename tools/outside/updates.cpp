// SPDX-License-Identifier: Apache-2.0
// The product's updates on numbers of others, in double. A line for each parameter and step:
// momentum RATE MOMENTUM w g velocity, or adamw RATE BETA1 BETA2 EPSILON DECAY t w g m v.
// Prints the parameter and its states behind the update.
#include <cstdio>
#include <iostream>
#include <string>

#include "crossover/operations/update.h"

namespace {

template <class Options>
void update(const Options& options, const crossover::UpdateTerms& terms, double w, double g,
            double first, double second) {
  options.template factors<double>(terms).update(w, g, first, second);
  std::printf("%.17g %.17g %.17g\n", w, first, second);
}

}  // namespace

int main() {
  std::string rule;
  double w = 0;
  double g = 0;
  double first = 0;
  double second = 0;
  while (std::cin >> rule) {
    crossover::UpdateTerms terms{};
    terms.gradient_factor = 1;
    if (rule == "momentum") {
      crossover::MomentumOptions options;
      std::cin >> options.learning_rate >> options.momentum >> w >> g >> first;
      update(options, terms, w, g, first, 0);
    } else {
      crossover::AdamWOptions options;
      std::cin >> options.learning_rate >> options.beta1 >> options.beta2 >> options.epsilon >>
          terms.weight_decay >> terms.step >> w >> g >> first >> second;
      update(options, terms, w, g, first, second);
    }
    if (!std::cin) {
      return 1;
    }
  }
  return 0;
}
