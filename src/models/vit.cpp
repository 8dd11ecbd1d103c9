// SPDX-License-Identifier: Apache-2.0
// vit-ti: the smallest vision transformer of Touvron et al. 2021 (DeiT-Ti) on images of 32² in
// patches of 4², with the mean over patches in place of a class token.
#include "crossover/catalogue.h"
#include "crossover/networks.h"
#include "transformer_block.h"

namespace crossover {

Model vit(const Vit& sizes) {
  Model model{.name = "vit",
              .sample = {3, sizes.image, sizes.image},
              .classes = sizes.classes,
              .layers = {}};
  Chain chain(model);
  chain.add(ConvolutionLayer{sizes.width, {.size = sizes.patch, .stride = sizes.patch}});
  chain.add(ToSequenceLayer{}).add(PositionEmbeddingLayer{});
  Value value = chain.value();
  for (std::int64_t i = 0; i < sizes.layers; ++i) {
    value = add_block(model, {.width = sizes.width, .heads = sizes.heads}, value);
  }
  Chain head(model, value);
  head.add(LayerNormLayer{}).add(GlobalAveragePoolLayer{.over_time = true});
  head.add(LinearLayer{sizes.classes});
  return model;
}

Family vit_family() {
  return {.names = {"vit-ti"}, .make = [](const std::string& name) {
            Model model = vit({});
            model.name = name;
            return Task{
                .model = model,
                .rows = 128,
                .batch = 32,
                .optimizer = AdamWOptions{.learning_rate = 1e-4},
                .generate = [model](std::int64_t rows) { return uniform_data(model, rows); }};
          }};
}

}  // namespace crossover
