// SPDX-License-Identifier: Apache-2.0
// The networks that the kernel of kernels/tailored.cuh is compiled for here, where no NVRTC
// compiles it for any: all rules, losses and activations; more samples than threads; loops of large
// layers; several lanes to a sample; one layer, and the most; wide rows; clusters.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>

#include "plan/launches/tailored_shape.h"

namespace crossover::cuda::tailored {

constexpr Shape network(std::initializer_list<int> widths, int batch,
                        Activation activation = Activation::relu, KernelRule rule = KernelRule::sgd,
                        LossFunction loss = LossFunction::cross_entropy, int most_blocks = 8) {
  Shape of{
      .layers = static_cast<int>(widths.size()) - 1, .loss = loss, .rule = rule, .batch = batch};
  int i = 0;
  for (const int width : widths) {
    of.activation[i > 0 ? i - 1 : 0] = activation;
    of.width[i++] = width;
  }
  of.activation[of.layers - 1] = Activation::identity;
  return fastest(of, most_blocks, 227 << 10, [](int /*blocks*/) { return 1; });
}

constexpr std::initializer_list<int> odd{5, 18, 7, 3};
/// Of these the first are compiled with what is kept, too: each path of that.
constexpr std::size_t kept_networks = 5;
inline constexpr std::array networks{
    network(odd, 37, Activation::sigmoid),
    network(odd, 37, Activation::sigmoid, KernelRule::momentum, LossFunction::mse),
    network(odd, 37, Activation::sigmoid, KernelRule::adamw, LossFunction::bce),
    network(odd, 37, Activation::gelu),
    network({20, 40, 24, 33}, 96, Activation::gelu, KernelRule::adamw, LossFunction::mse),
    network(odd, 37, Activation::tanh),
    network(odd, 37, Activation::gelu_tanh),
    network(odd, 37, Activation::silu),
    network(odd, 37, Activation::relu6),
    network(odd, 37, Activation::hardswish),
    network(odd, 37, Activation::hardsigmoid),
    network(odd, 37, Activation::leaky_relu),
    network({2, 4, 2}, 100),
    network({3, 6, 2}, 600, Activation::silu, KernelRule::sgd, LossFunction::cross_entropy, 1),
    network({20, 40, 24, 3}, 96, Activation::relu, KernelRule::momentum),
    network({20, 40, 24, 3}, 96, Activation::relu, KernelRule::momentum, LossFunction::mse, 2),
    network({33, 31, 2}, 304, Activation::tanh),
    network({29, 32, 16, 2}, 10, Activation::relu, KernelRule::adamw),
    network({7, 3}, 20, Activation::identity, KernelRule::adamw),
    network({2, 3, 4, 5, 6, 7, 8, 7, 6, 5, 4, 3, 2}, 9, Activation::tanh),
    network({190, 4, 2}, 37, Activation::tanh, KernelRule::adamw),
};

}  // namespace crossover::cuda::tailored
