// SPDX-License-Identifier: Apache-2.0
// Fully connected networks that people train without a GPU in mind: policy, the actor of
// reinforcement learning on classic control tasks; surrogate, a deep and narrow one in place of a
// function (as of physics-informed networks); matrix-4, the example of SimpleChains.jl, which
// learns a matrix exponential from one batch of all its rows. Their data is generated.
#include "crossover/catalogue.h"

namespace crossover {
namespace {

Task small_dense(const Model& model, std::int64_t rows, std::int64_t batch) {
  return {.model = model,
          .rows = rows,
          .batch = batch,
          .optimizer = AdamWOptions{.learning_rate = 1e-3, .weight_decay = 0},
          .generate = [model](std::int64_t count) { return uniform_data(model, count); }};
}

}  // namespace

Family small_dense_family() {
  return {.names = {"policy", "surrogate", "matrix-4"}, .make = [](const std::string& name) {
            constexpr auto tanh = Activation::tanh;
            if (name == "policy") {
              return small_dense(mlp(name, {4, 64, 64, 2}, tanh), 2048, 32);
            }
            if (name == "surrogate") {
              const std::vector<std::int64_t> widths{2, 20, 20, 20, 20, 20, 20, 20, 20, 1};
              return small_dense(mlp(name, widths, tanh, LossFunction::mse), 10'000, 2000);
            }
            return small_dense(mlp(name, {4, 32, 16, 4}, tanh, LossFunction::mse), 10'000, 10'000);
          }};
}

}  // namespace crossover
