// SPDX-License-Identifier: Apache-2.0
// mobilenet-v2 (Sandler et al. 2018), on images of 96 x 96 as on small devices.
#include "chain.h"
#include "crossover/catalogue.h"
#include "crossover/networks.h"

namespace crossover {
namespace {

/// Batch-normalized; no bias, which normalization would take out again.
Chain& add_normalized(Chain& chain, ConvolutionLayer layer) {
  layer.has_bias = false;
  return chain.add(layer).add(BatchNormLayer{});
}

Chain& add_activated(Chain& chain, const ConvolutionLayer& layer) {
  return add_normalized(chain, layer).add(ActivationLayer{Activation::relu6});
}

/// An inverted residual: to more channels by 1 x 1, each of them by 3 x 3 alone, and back to few by
/// 1 x 1, which is added to x where it has the shape of x.
Value add_block(Model& model, Value x, std::int64_t in, const MobileNet::Stage& stage,
                std::int64_t stride) {
  const std::int64_t middle = in * stage.widened_by;
  Chain block(model, x);
  if (stage.widened_by > 1) {
    add_activated(block, {.out_channels = middle, .window = {}});
  }
  add_activated(block, {.out_channels = middle,
                        .window = {.size = 3, .stride = stride, .padding = 1},
                        .groups = middle});
  add_normalized(block, {.out_channels = stage.channels, .window = {}});
  return in == stage.channels && stride == 1 ? model.add(AddLayer{}, {x, block.value()})
                                             : block.value();
}

}  // namespace

Model mobilenet(const MobileNet& sizes) {
  Model model{.name = "mobilenet-v2",
              .sample = {3, sizes.image, sizes.image},
              .classes = sizes.classes,
              .layers = {}};
  Chain stem(model);
  add_activated(stem,
                {.out_channels = sizes.stem, .window = {.size = 3, .stride = 2, .padding = 1}});
  Value value = stem.value();
  std::int64_t in = sizes.stem;
  for (const MobileNet::Stage& stage : sizes.stages) {
    for (std::int64_t block = 0; block < stage.blocks; ++block) {
      value = add_block(model, value, in, stage, block == 0 ? stage.stride : 1);
      in = stage.channels;
    }
  }
  Chain head(model, value);
  add_activated(head, {.out_channels = sizes.head, .window = {}});
  head.add(GlobalAveragePoolLayer{}).add(LinearLayer{sizes.classes});
  return model;
}

Family mobilenet_family() {
  return {.names = {"mobilenet-v2"}, .make = [](const std::string& /*name*/) {
            constexpr std::int64_t batch = 16;
            const Model model = mobilenet({});
            return Task{
                .model = model,
                .rows = 4 * batch,
                .batch = batch,
                .optimizer = MomentumOptions{.learning_rate = 1e-4},
                .generate = [model](std::int64_t rows) { return uniform_data(model, rows); }};
          }};
}

}  // namespace crossover
