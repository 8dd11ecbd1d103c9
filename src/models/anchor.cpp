// SPDX-License-Identifier: Apache-2.0
// Odd fully connected networks, in odd batches: wide and shallow ones, some without a hidden layer,
// some with many classes. What is said of networks that nobody measured (docs/method/advice.md) is
// fitted to them, too: on the disc ladder alone, with its two classes and one batch size, calls,
// steps and classes cannot be told apart.
#include <algorithm>
#include <vector>

#include "crossover/catalogue.h"

namespace crossover {
namespace {

struct Anchor {
  std::vector<std::int64_t> widths;
  std::int64_t batch;

  [[nodiscard]] std::string name() const {
    std::string name = "mlp";
    for (const std::int64_t width : widths) {
      name.append("-").append(std::to_string(width));
    }
    return name;
  }
};

const std::vector<Anchor>& anchors() {
  static const std::vector<Anchor> all{{{10, 4096, 10}, 100}, {{2400, 4, 150}, 500},
                                       {{400, 2}, 100},       {{44, 54}, 20},
                                       {{3, 300, 7}, 50},     {{60, 5, 18, 13, 30}, 20}};
  return all;
}

}  // namespace

/// Called as --mlp= with these widths is, and trained so but for the batch.
Family anchor_family() {
  Family family;
  for (const Anchor& anchor : anchors()) {
    family.names.push_back(anchor.name());
  }
  family.make = [](const std::string& name) {
    const auto anchor = std::find_if(anchors().begin(), anchors().end(),
                                     [&](const Anchor& one) { return one.name() == name; });
    const std::vector<std::int64_t>& widths = anchor->widths;
    return Task{.model = mlp(name, widths, Activation::relu),
                .rows = 1000,
                .batch = anchor->batch,
                .optimizer = SgdOptions{},
                .generate = [widths](std::int64_t rows) {
                  return uniform_rows({widths.front()}, rows, widths.back());
                }};
  };
  return family;
}

}  // namespace crossover
