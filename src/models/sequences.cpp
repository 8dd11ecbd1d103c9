// SPDX-License-Identifier: Apache-2.0
// Recurrent networks and transformers.
#include <algorithm>

#include "chain.h"
#include "crossover/catalogue.h"
#include "crossover/networks.h"

namespace crossover {

// ---- lstm: the recurrent network of Shi et al. 2016.

Model language_model(const LanguageModel& sizes) {
  Model model{.name = "lstm",
              .sample = {sizes.time},
              .sample_type = Type::i32,
              .classes = sizes.vocabulary,
              .labels = {sizes.time},
              .layers = {}};
  Chain chain(model);
  chain.add(EmbeddingLayer{sizes.vocabulary, sizes.hidden});
  for (std::int64_t i = 0; i < sizes.layers; ++i) {
    chain.add(LstmLayer{sizes.hidden});
  }
  chain.add(LinearLayer{sizes.vocabulary});
  return model;
}

// The loss is a mean over thousands of places, so that the gradient of a word's vector is tiny: at
// a rate of 5 its update is some tens of roundings of float32.
Family lstm_family() {
  return {.names = {"lstm"},
          .make = [](const std::string& /*name*/) { return shi_task(language_model({}), 128, 5); }};
}

// ---- What transformers consist of.

struct TransformerBlock {
  std::int64_t width = 0, heads = 1;
  bool causal = false;
  bool bias = true;
  LayerNormLayer norm = {};
  Activation activation = Activation::gelu;
};

/// A pre-normalization block: what attention, and then two layers with four widths between them,
/// make of the normalized value is added to it.
inline Value add_block(Model& model, const TransformerBlock& block, Value value) {
  const auto linear = [&](std::int64_t width) { return LinearLayer{width, block.bias}; };
  Chain attention(model, value);
  attention.add(block.norm).add(linear(3 * block.width));
  attention.add(AttentionLayer{block.heads, block.causal}).add(linear(block.width));
  value = model.add(AddLayer{}, {value, attention.value()});
  Chain layers(model, value);
  layers.add(block.norm).add(linear(4 * block.width));
  layers.add(ActivationLayer{block.activation}).add(linear(block.width));
  return model.add(AddLayer{}, {value, layers.value()});
}

// ---- gpt-W: GPT-2's architecture (Radford et al. 2019) of width W without dropout, on sequences
// of 64 characters. Twice the width has one block more, and about five times the parameters: the
// ruler for the crossover of transformers.

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

// ---- microgpt-W: the transformer that Karpathy published in 2026 as 200 lines of plain Python, of
// width W, which is 16 there: one block, RMSNorm without weights, no biases, an output of its own
// weights, on sequences of 16 characters. Learning rate and betas are ours.

namespace {

constexpr const char* micro_gpt_prefix = "microgpt-";

Model micro_gpt(std::int64_t width) {
  constexpr std::int64_t vocabulary = 27, time = 16, heads = 4;
  Model model{.name = micro_gpt_prefix + std::to_string(width),
              .sample = {time},
              .sample_type = Type::i32,
              .classes = vocabulary,
              .labels = {time},
              .layers = {}};
  const LayerNormLayer norm{.is_rms = true, .elementwise_affine = false};
  Chain chain(model);
  chain.add(EmbeddingLayer{vocabulary, width, true}).add(PositionEmbeddingLayer{}).add(norm);
  const Value value = add_block(model,
                                {.width = width,
                                 .heads = heads,
                                 .causal = true,
                                 .bias = false,
                                 .norm = norm,
                                 .activation = Activation::relu},
                                chain.value());
  Chain(model, value).add(LinearLayer{vocabulary, false});
  return model;
}

}  // namespace

Family micro_gpt_family() {
  Family family{.names = {}, .make = {}, .ladder = "microgpt"};
  for (std::int64_t width = narrowest; width <= widest; width *= 2) {
    family.names.push_back(micro_gpt_prefix + std::to_string(width));
  }
  family.make = [](const std::string& name) {
    constexpr std::int64_t batch = 16;
    const Model model = micro_gpt(std::stoll(name.substr(std::string(micro_gpt_prefix).size())));
    return Task{.model = model,
                .rows = 4 * batch,
                .batch = batch,
                .optimizer = AdamWOptions{.weight_decay = 0},
                .generate = [model](std::int64_t rows) {
                  return uniform_sentences(model.sample.front(), rows, model.classes);
                }};
  };
  return family;
}

// ---- vit-ti: the smallest vision transformer of Touvron et al. 2021 (DeiT-Ti) on images of 32² in
// patches of 4², with the mean over patches in place of a class token.

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
            return uniform_task(model, 128, 32, AdamWOptions{.learning_rate = 1e-4});
          }};
}

}  // namespace crossover
