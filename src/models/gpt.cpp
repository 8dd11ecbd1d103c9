// SPDX-License-Identifier: Apache-2.0
// gpt-W: GPT-2's architecture (Radford et al. 2019) of width W without dropout, on sequences of 64
// characters. Twice the width has one block more, and about five times the parameters: the ruler
// for the crossover of transformers.
#include <algorithm>

#include "crossover/catalogue.h"
#include "crossover/networks.h"
#include "transformer_block.h"

namespace crossover {
namespace {

constexpr std::int64_t narrowest = 16, widest = 512;
constexpr std::int64_t width_of_a_head = 64;

std::string gpt_name(std::int64_t width) { return "gpt-" + std::to_string(width); }

Gpt sizes_named(const std::string& name) {
  Gpt sizes{.width = narrowest, .layers = 1};
  while (gpt_name(sizes.width) != name) {
    sizes.width *= 2;
    ++sizes.layers;
  }
  sizes.heads = std::max<std::int64_t>(1, sizes.width / width_of_a_head);
  return sizes;
}

}  // namespace

Model gpt(const Gpt& sizes) {
  Model model{.name = "gpt",
              .sample = {sizes.time},
              .sample_type = Type::i32,
              .classes = sizes.vocabulary,
              .labels = {sizes.time},
              .layers = {}};
  constexpr LayerNumber embedding = 0;
  Chain chain(model);
  chain.add(EmbeddingLayer{sizes.vocabulary, sizes.width, true}).add(PositionEmbeddingLayer{});
  const TransformerBlock block{.width = sizes.width, .heads = sizes.heads, .causal = true};
  Value value = chain.value();
  for (std::int64_t i = 0; i < sizes.layers; ++i) {
    value = add_block(model, block, value);
  }
  Chain(model, value).add(LayerNormLayer{}).add(tied_linear(sizes.vocabulary, embedding));
  return model;
}

Family gpt_family() {
  Family family;
  for (std::int64_t width = narrowest; width <= widest; width *= 2) {
    family.names.push_back(gpt_name(width));
  }
  family.ladder = "gpt";
  family.make = [](const std::string& name) {
    constexpr std::int64_t batch = 12;
    Model model = gpt(sizes_named(name));
    model.name = name;
    return Task{.model = model,
                .rows = 4 * batch,
                .batch = batch,
                .optimizer = AdamWOptions{},
                .generate = [model](std::int64_t rows) {
                  return uniform_sentences(model.sample.front(), rows, model.classes);
                }};
  };
  return family;
}

}  // namespace crossover
