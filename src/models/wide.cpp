// SPDX-License-Identifier: Apache-2.0
// Two wide shallow networks: most of their time goes into bytes and activations, of the disc
// ladder's into calls and products. They anchor what is said of networks that nobody measured
// (docs/method/advice.md).
#include <map>
#include <vector>

#include "crossover/catalogue.h"

namespace crossover {
namespace {

const std::map<std::string, std::vector<std::int64_t>>& all_widths() {
  static const std::map<std::string, std::vector<std::int64_t>> all{
      {"mlp-10-4096-10", {10, 4096, 10}}, {"mlp-4096-32-10", {4096, 32, 10}}};
  return all;
}

}  // namespace

/// Called and trained as --mlp= with these widths is.
Family wide_family() {
  Family family;
  for (const auto& [name, widths] : all_widths()) {
    family.names.push_back(name);
  }
  family.make = [](const std::string& name) {
    const std::vector<std::int64_t>& widths = all_widths().at(name);
    return Task{.model = mlp(name, widths, Activation::relu),
                .rows = 1000,
                .batch = 100,
                .optimizer = SgdOptions{},
                .generate = [widths](std::int64_t rows) {
                  return uniform_rows({widths.front()}, rows, widths.back());
                }};
  };
  return family;
}

}  // namespace crossover
