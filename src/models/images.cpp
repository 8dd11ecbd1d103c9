// SPDX-License-Identifier: Apache-2.0
// Convolutional networks.
#include "chain.h"
#include "crossover/catalogue.h"
#include "crossover/networks.h"

namespace crossover {

// ---- lenet-5 (LeCun et al. 1998) with ReLU and max pooling: images of the size of MNIST.

Family lenet_family() {
  return {.names = {"lenet-5"}, .make = [](const std::string& name) {
            constexpr Window pool{.size = 2, .stride = 2};
            Model model{.name = name, .sample = {1, 28, 28}, .classes = 10, .layers = {}};
            Chain chain(model);
            chain.add(ConvolutionLayer{6, {.size = 5, .padding = 2}}).relu();
            chain.add(MaxPoolLayer{pool}).add(ConvolutionLayer{16, {.size = 5}}).relu();
            chain.add(MaxPoolLayer{pool}).add(FlattenLayer{}).add(LinearLayer{120}).relu();
            chain.add(LinearLayer{84}).relu().add(LinearLayer{model.classes});
            return uniform_task(model, 1024, 64,
                                AdamWOptions{.learning_rate = 1e-3, .weight_decay = 0});
          }};
}

// ---- alexnet-r, alexnet-s: images of the size of CIFAR-10, and of ImageNet.

namespace {

Model of_images(const std::string& name, std::int64_t image, std::int64_t classes) {
  return {.name = name, .sample = {3, image, image}, .classes = classes, .layers = {}};
}

/// Batch-normalized; no bias, which normalization would take out again.
Chain& add_normalized(Chain& chain, ConvolutionLayer layer) {
  layer.has_bias = false;
  return chain.add(layer).add(BatchNormLayer{});
}

}  // namespace

Model alexnet(const AlexNetR& sizes) {
  constexpr Window window{.size = 5, .padding = 2};
  constexpr Window pool{.size = 3, .stride = 2, .ceil = true};
  Model model = of_images("alexnet-r", sizes.image, sizes.classes);
  Chain chain(model);
  chain.add(ConvolutionLayer{sizes.channels[0], window}).add(MaxPoolLayer{pool}).relu();
  chain.add(ConvolutionLayer{sizes.channels[1], window}).relu().add(AveragePoolLayer{pool});
  chain.add(ConvolutionLayer{sizes.channels[2], window}).relu().add(AveragePoolLayer{pool});
  chain.add(FlattenLayer{}).add(LinearLayer{sizes.classes});
  return model;
}

Model alexnet(const AlexNetS& sizes) {
  constexpr Window first{.size = 11, .stride = 4, .padding = 2};
  constexpr Window second{.size = 5, .padding = 2};
  constexpr Window window{.size = 3, .padding = 1};
  constexpr Window pool{.size = 3, .stride = 2};
  Model model = of_images("alexnet-s", sizes.image, sizes.classes);
  Chain chain(model);
  chain.add(ConvolutionLayer{sizes.channels[0], first}).relu().add(MaxPoolLayer{pool});
  chain.add(ConvolutionLayer{sizes.channels[1], second}).relu().add(MaxPoolLayer{pool});
  chain.add(ConvolutionLayer{sizes.channels[2], window}).relu();
  chain.add(ConvolutionLayer{sizes.channels[3], window}).relu();
  chain.add(ConvolutionLayer{sizes.channels[4], window}).relu().add(MaxPoolLayer{pool});
  chain.add(FlattenLayer{});
  for (int i = 0; i < 2; ++i) {
    chain.add(LinearLayer{sizes.hidden}).relu();
    if (sizes.dropout > 0) {
      chain.add(DropoutLayer{sizes.dropout});
    }
  }
  chain.add(LinearLayer{sizes.classes});
  return model;
}

Family alexnet_family() {
  return {.names = {"alexnet-r", "alexnet-s"}, .make = [](const std::string& name) {
            return name == "alexnet-r" ? shi_task(alexnet(AlexNetR{}), 1024, 0.05)
                                       : shi_task(alexnet(AlexNetS{}), 16, 0.01);
          }};
}

// ---- resnet-56, resnet-50: images of the size of CIFAR-10, and of ImageNet.

namespace {

/// The sum of what `main` and a shortcut from `x` give, through a ReLU.
Value with_shortcut(Model& model, const Chain& main, const Chain& shortcut) {
  Chain sum(model, model.add(AddLayer{}, {main.value(), shortcut.value()}));
  return sum.relu().value();
}

/// Two convolutions of 3 x 3, of which the first has the stride.
Value basic_block(Model& model, Value x, std::int64_t in, std::int64_t channels,
                  std::int64_t stride) {
  Chain main(model, x);
  add_normalized(main, {channels, {.size = 3, .stride = stride, .padding = 1}}).relu();
  add_normalized(main, {channels, {.size = 3, .padding = 1}});
  Chain shortcut(model, x);
  if (in != channels || stride != 1) {
    add_normalized(shortcut, {channels, {.stride = stride}});
  }
  return with_shortcut(model, main, shortcut);
}

constexpr std::int64_t widened_by = 4;

Value bottleneck(Model& model, Value x, std::int64_t in, std::int64_t middle, std::int64_t stride) {
  const std::int64_t out = widened_by * middle;
  Chain main(model, x);
  add_normalized(main, {middle, {}}).relu();
  add_normalized(main, {middle, {.size = 3, .stride = stride, .padding = 1}}).relu();
  add_normalized(main, {out, {}});
  Chain shortcut(model, x);
  if (in != out || stride != 1) {
    add_normalized(shortcut, {out, {.stride = stride}});
  }
  return with_shortcut(model, main, shortcut);
}

/// Each width but the first begins with a stride of two.
std::int64_t stride_of(std::size_t width, std::int64_t block) {
  return width > 0 && block == 0 ? 2 : 1;
}

}  // namespace

Model resnet(const ResNetR& sizes) {
  Model model =
      of_images("resnet-" + std::to_string(6 * sizes.blocks + 2), sizes.image, sizes.classes);
  Chain stem(model);
  add_normalized(stem, {sizes.channels[0], {.size = 3, .padding = 1}}).relu();
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
  Model model = of_images("resnet-50", sizes.image, sizes.classes);
  Chain stem(model);
  add_normalized(stem, {sizes.stem, {.size = 7, .stride = 2, .padding = 3}}).relu();
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

// Rates at which float32 and float64 still agree after the first update: so deep, normalized
// networks magnify each rounding by the ReLUs and variances behind it. At 1e-3 the second loss of
// resnet-56 would be off by 6e-6, as that of resnet-50 at 1e-5 is with a batch of 4.
Family resnet_family() {
  return {.names = {"resnet-56", "resnet-50"}, .make = [](const std::string& name) {
            return name == "resnet-56" ? shi_task(resnet(ResNetR{}), 128, 1e-4)
                                       : shi_task(resnet(ResNetS{}), 16, 1e-5);
          }};
}

// ---- mobilenet-v2 (Sandler et al. 2018), on images of 96 x 96 as on small devices.

namespace {

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
  Model model = of_images("mobilenet-v2", sizes.image, sizes.classes);
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
            return uniform_task(mobilenet({}), 4 * batch, batch,
                                MomentumOptions{.learning_rate = 1e-4});
          }};
}

}  // namespace crossover
