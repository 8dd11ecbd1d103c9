// SPDX-License-Identifier: Apache-2.0
// lstm: the recurrent network of Shi et al. 2016.
#include "chain.h"
#include "crossover/networks.h"
#include "shi.h"

namespace crossover {

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

Family lstm_family() {
  return {.names = {"lstm"}, .make = [](const std::string& /*name*/) {
            return shi_task(language_model({}), 128, 0.5);
          }};
}

}  // namespace crossover
