// SPDX-License-Identifier: Apache-2.0
// What transformers consist of.
#pragma once

#include "chain.h"

namespace crossover {

struct TransformerBlock {
  std::int64_t width = 0, heads = 1;
  bool causal = false;
};

/// A pre-normalization block: what attention, and then two layers with four widths between them,
/// make of the normalized value is added to it.
inline Value add_block(Model& model, const TransformerBlock& block, Value value) {
  Chain attention(model, value);
  attention.add(LayerNormLayer{}).add(LinearLayer{3 * block.width});
  attention.add(AttentionLayer{block.heads, block.causal}).add(LinearLayer{block.width});
  value = model.add(AddLayer{}, {value, attention.value()});
  Chain layers(model, value);
  layers.add(LayerNormLayer{}).add(LinearLayer{4 * block.width});
  layers.add(ActivationLayer{Activation::gelu}).add(LinearLayer{block.width});
  return model.add(AddLayer{}, {value, layers.value()});
}

}  // namespace crossover
