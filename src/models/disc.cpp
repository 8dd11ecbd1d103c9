// SPDX-License-Identifier: Apache-2.0
// disc-L: L linear layers 2 -> 4 -> 8 -> ... -> 2^L -> 2 on points of a plane. Each layer more
// quadruples the parameters, which makes the family a ruler for the crossover.
#include "crossover/catalogue.h"

namespace crossover {

Family disc_family() {
  constexpr int fewest_layers = 2;
  constexpr int most_layers = 12;
  Family family;
  for (int layers = fewest_layers; layers <= most_layers; ++layers) {
    family.names.push_back("disc-" + std::to_string(layers));
  }
  family.make = [](const std::string& name) {
    const int layers = std::stoi(name.substr(name.find('-') + 1));
    std::vector<std::int64_t> widths;
    for (int i = 1; i <= layers; ++i) {
      widths.push_back(std::int64_t{1} << i);
    }
    widths.push_back(2);
    return Task{.model = mlp(name, widths, Activation::relu),
                .rows = 1000,
                .batch = 100,
                .optimizer = SgdOptions{.learning_rate = 0.1},
                .generate = disc_points};
  };
  return family;
}

}  // namespace crossover
