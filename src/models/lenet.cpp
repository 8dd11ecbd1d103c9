// SPDX-License-Identifier: Apache-2.0
// lenet-5 (LeCun et al. 1998) with ReLU and max pooling: images of the size of MNIST.
#include "chain.h"
#include "crossover/catalogue.h"

namespace crossover {

Family lenet_family() {
  return {.names = {"lenet-5"}, .make = [](const std::string& name) {
            constexpr Window pool{.size = 2, .stride = 2};
            Model model{.name = name, .sample = {1, 28, 28}, .classes = 10, .layers = {}};
            Chain chain(model);
            chain.add(ConvolutionLayer{6, {.size = 5, .padding = 2}}).relu();
            chain.add(MaxPoolLayer{pool}).add(ConvolutionLayer{16, {.size = 5}}).relu();
            chain.add(MaxPoolLayer{pool}).add(FlattenLayer{}).add(LinearLayer{120}).relu();
            chain.add(LinearLayer{84}).relu().add(LinearLayer{model.classes});
            return Task{
                .model = model,
                .rows = 1024,
                .batch = 64,
                .optimizer = AdamWOptions{.learning_rate = 1e-3, .weight_decay = 0},
                .generate = [model](std::int64_t rows) { return uniform_data(model, rows); }};
          }};
}

}  // namespace crossover
