// SPDX-License-Identifier: Apache-2.0
#include "shi.h"

namespace crossover {

Task shi_task(const Model& model, std::int64_t batch, double learning_rate) {
  constexpr int batches = 4;
  return {.model = model,
          .rows = batches * batch,
          .batch = batch,
          .optimizer = SgdOptions{.learning_rate = learning_rate},
          .generate = [model](std::int64_t rows) { return uniform_data(model, rows); }};
}

}  // namespace crossover
