// SPDX-License-Identifier: Apache-2.0
// heart: the MLP of a notebook on the UCI heart-disease data (29 features, 709 training rows): the
// small real case, in which 71 tiny batches an epoch leave a GPU nothing but its launch and copy
// costs.
#include "crossover/catalogue.h"

namespace crossover {

Family heart_family() {
  return {.names = {"heart"}, .make = [](const std::string& name) {
            return Task{.model = mlp(name, {29, 32, 16, 2}, Activation::relu),
                        .rows = 709,
                        .batch = 10,
                        .optimizer = AdamWOptions{.learning_rate = 1e-3, .weight_decay = 1e-4},
                        .generate = [](std::int64_t rows) { return uniform_rows({29}, rows, 2); }};
          }};
}

}  // namespace crossover
