// SPDX-License-Identifier: Apache-2.0
#include "shi.h"

namespace crossover {

Task shi_task(Model model, std::int64_t batch, double learning_rate) {
  constexpr int batches = 4;
  const auto generate = [sample = model.sample, type = model.sample_type,
                         classes = model.classes](std::int64_t rows) {
    return type == Type::i32 ? uniform_tokens(sample.front(), rows, classes)
                             : uniform_rows(sample, rows, classes);
  };
  return {.model = std::move(model),
          .rows = batches * batch,
          .batch = batch,
          .optimizer = SgdOptions{.learning_rate = learning_rate},
          .generate = generate};
}

}  // namespace crossover
