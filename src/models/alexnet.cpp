// SPDX-License-Identifier: Apache-2.0
// alexnet-r, alexnet-s: images of the size of CIFAR-10, and of ImageNet.
#include "chain.h"
#include "crossover/networks.h"
#include "shi.h"

namespace crossover {
namespace {

Model of_images(const std::string& name, std::int64_t image, std::int64_t classes) {
  return {.name = name, .sample = {3, image, image}, .classes = classes, .layers = {}};
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

}  // namespace crossover
