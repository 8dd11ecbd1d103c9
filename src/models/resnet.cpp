// SPDX-License-Identifier: Apache-2.0
// resnet-56, resnet-50: images of the size of CIFAR-10, and of ImageNet.
#include "chain.h"
#include "crossover/networks.h"
#include "shi.h"

namespace crossover {
namespace {

/// Batch-normalized; no bias, which normalization would take out again.
Chain& add_convolution(Chain& chain, std::int64_t channels, const Window& window) {
  return chain.add(ConvolutionLayer{channels, window, false}).add(BatchNormLayer{});
}

/// The sum of what `main` and a shortcut from `x` give, through a ReLU.
Value join(Model& model, const Chain& main, const Chain& shortcut) {
  Chain sum(model, model.add(AddLayer{}, {main.value(), shortcut.value()}));
  return sum.relu().value();
}

/// Two convolutions of 3 x 3, of which the first has the stride.
Value basic_block(Model& model, Value x, std::int64_t in, std::int64_t channels,
                  std::int64_t stride) {
  Chain main(model, x);
  add_convolution(main, channels, {.size = 3, .stride = stride, .padding = 1}).relu();
  add_convolution(main, channels, {.size = 3, .padding = 1});
  Chain shortcut(model, x);
  if (in != channels || stride != 1) {
    add_convolution(shortcut, channels, {.stride = stride});
  }
  return join(model, main, shortcut);
}

constexpr std::int64_t widened_by = 4;

Value bottleneck(Model& model, Value x, std::int64_t in, std::int64_t middle, std::int64_t stride) {
  const std::int64_t out = widened_by * middle;
  Chain main(model, x);
  add_convolution(main, middle, {}).relu();
  add_convolution(main, middle, {.size = 3, .stride = stride, .padding = 1}).relu();
  add_convolution(main, out, {});
  Chain shortcut(model, x);
  if (in != out || stride != 1) {
    add_convolution(shortcut, out, {.stride = stride});
  }
  return join(model, main, shortcut);
}

/// Each width but the first begins with a stride of two.
std::int64_t stride_of(std::size_t width, std::int64_t block) {
  return width > 0 && block == 0 ? 2 : 1;
}

}  // namespace

Model resnet(const ResNetR& sizes) {
  Model model{.name = "resnet-" + std::to_string(6 * sizes.blocks + 2),
              .sample = {3, sizes.image, sizes.image},
              .classes = sizes.classes,
              .layers = {}};
  Chain stem(model);
  add_convolution(stem, sizes.channels[0], {.size = 3, .padding = 1}).relu();
  Value value = stem.value();
  std::int64_t in = sizes.channels[0];
  for (std::size_t width = 0; width < sizes.channels.size(); ++width) {
    for (std::int64_t block = 0; block < sizes.blocks; ++block) {
      const std::int64_t channels = sizes.channels[width];
      value = basic_block(model, value, in, channels, stride_of(width, block));
      in = channels;
    }
  }
  Chain(model, value).add(GlobalAveragePoolLayer{}).add(LinearLayer{sizes.classes});
  return model;
}

Model resnet(const ResNetS& sizes) {
  Model model{.name = "resnet-50",
              .sample = {3, sizes.image, sizes.image},
              .classes = sizes.classes,
              .layers = {}};
  Chain stem(model);
  add_convolution(stem, sizes.stem, {.size = 7, .stride = 2, .padding = 3}).relu();
  stem.add(MaxPoolLayer{{.size = 3, .stride = 2, .padding = 1}});
  Value value = stem.value();
  std::int64_t in = sizes.stem;
  for (std::size_t width = 0; width < sizes.blocks.size(); ++width) {
    for (std::int64_t block = 0; block < sizes.blocks[width]; ++block) {
      value = bottleneck(model, value, in, sizes.middle[width], stride_of(width, block));
      in = widened_by * sizes.middle[width];
    }
  }
  Chain(model, value).add(GlobalAveragePoolLayer{}).add(LinearLayer{sizes.classes});
  return model;
}

Family resnet_family() {
  return {.names = {"resnet-56", "resnet-50"}, .make = [](const std::string& name) {
            return name == "resnet-56" ? shi_task(resnet(ResNetR{}), 128, 1e-4)
                                       : shi_task(resnet(ResNetS{}), 16, 1e-5);
          }};
}

}  // namespace crossover
