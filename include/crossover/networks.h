// SPDX-License-Identifier: Apache-2.0
// The networks of Shi et al. 2016, "Benchmarking State-of-the-Art Deep Learning Software Tools",
// MobileNet and transformers, by their sizes: as they stand here unless others are given. model.h
// has the fully connected ones.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "crossover/model.h"

namespace crossover {

/// alexnet-r: three convolutions of 5 x 5 with pooling on images of CIFAR-10, as in Caffe's quick
/// network for it.
struct AlexNetR {
  std::int64_t image = 32;  ///< rows, and columns
  std::array<std::int64_t, 3> channels{32, 32, 64};
  std::int64_t classes = 10;
};
Model alexnet(const AlexNetR& sizes);

/// alexnet-s (Krizhevsky et al. 2012) in one tower, without local response normalization.
struct AlexNetS {
  std::int64_t image = 224;
  std::array<std::int64_t, 5> channels{96, 256, 384, 384, 256};
  std::int64_t hidden = 4096;
  std::int64_t classes = 1000;
  double dropout = 0.5;  ///< 0: no such layers
};
Model alexnet(const AlexNetS& sizes);

/// The residual network of 6 blocks + 2 layers for CIFAR-10 (He et al. 2016): resnet-56, with
/// convolutions of 1 x 1 where a shortcut changes its shape.
struct ResNetR {
  std::int64_t blocks = 9;  ///< of each of the three widths
  std::int64_t image = 32;
  std::array<std::int64_t, 3> channels{16, 32, 64};
  std::int64_t classes = 10;
};
Model resnet(const ResNetR& sizes);

/// resnet-50 (He et al. 2016): bottlenecks of 1 x 1, 3 x 3 and 1 x 1, of which the second has the
/// stride.
struct ResNetS {
  std::int64_t image = 224;
  std::int64_t stem = 64;                          ///< channels of the first convolution
  std::array<std::int64_t, 4> blocks{3, 4, 6, 3};  ///< of each width
  std::array<std::int64_t, 4> middle{64, 128, 256,
                                     512};  ///< channels; a block gives four times as many
  std::int64_t classes = 1000;
};
Model resnet(const ResNetS& sizes);

/// mobilenet-v2 (Sandler et al. 2018) without dropout: inverted residuals, whose middle convolution
/// has a group for each channel.
struct MobileNet {
  struct Stage {
    std::int64_t widened_by;  ///< channels of the middle, for each that comes in
    std::int64_t channels;    ///< that a block gives
    std::int64_t blocks;
    std::int64_t stride;  ///< of the first block
  };
  std::int64_t image = 96;
  std::int64_t stem = 32;  ///< channels of the first convolution
  std::vector<Stage> stages{{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                            {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
  std::int64_t head = 1280;  ///< channels of the last convolution
  std::int64_t classes = 1000;
};
Model mobilenet(const MobileNet& sizes);

/// lstm: a language model that predicts a token at every place of a sequence.
struct LanguageModel {
  std::int64_t vocabulary = 10000;
  std::int64_t hidden = 256;  ///< of each layer, and of the embedding
  std::int64_t layers = 2;
  std::int64_t time = 32;  ///< tokens of a sequence
};
Model language_model(const LanguageModel& sizes);

/// gpt-64: a transformer that predicts a character at every place of a sequence from those up to
/// it. Its last product reads the embedding's table.
struct Gpt {
  std::int64_t vocabulary = 65;
  std::int64_t width = 64;
  std::int64_t layers = 3;  ///< blocks of attention and two linear layers, of 4 widths within
  std::int64_t heads = 1;
  std::int64_t time = 64;
};
Model gpt(const Gpt& sizes);

/// vit-ti: a transformer that classifies images by their patches.
struct Vit {
  std::int64_t image = 32;
  std::int64_t patch = 4;
  std::int64_t width = 192;
  std::int64_t layers = 12;  ///< blocks as those of Gpt that see all places
  std::int64_t heads = 3;
  std::int64_t classes = 10;
};
Model vit(const Vit& sizes);

}  // namespace crossover
