// SPDX-License-Identifier: Apache-2.0
// Activation functions between the layers of a network; elementwise.h computes them.
#pragma once

#include <initializer_list>
#include <type_traits>
#include <utility>

#include "crossover/host_device.h"

namespace crossover {

enum class Activation {
  identity,
  relu,
  sigmoid,
  tanh,
  gelu,         ///< x Phi(x), by the error function (Hendrycks & Gimpel 2016)
  gelu_tanh,    ///< its approximation by tanh
  silu,         ///< x sigmoid(x)
  relu6,        ///< x, held between 0 and 6
  hardswish,    ///< x hardsigmoid(x) (Howard et al. 2019)
  hardsigmoid,  ///< x / 6 + 1/2, held between 0 and 1
  leaky_relu,   ///< x, or 0.01 x where that is negative
};

/// As files, flags and names of rows call them: PyTorch's names.
inline constexpr std::initializer_list<std::pair<const char*, Activation>> named_activations{
    {"relu", Activation::relu},
    {"sigmoid", Activation::sigmoid},
    {"identity", Activation::identity},
    {"tanh", Activation::tanh},
    {"gelu", Activation::gelu},
    {"gelu_tanh", Activation::gelu_tanh},
    {"silu", Activation::silu},
    {"relu6", Activation::relu6},
    {"hardswish", Activation::hardswish},
    {"hardsigmoid", Activation::hardsigmoid},
    {"leaky_relu", Activation::leaky_relu}};

/// Whether the derivative is taken from the activation's input, since its result does not tell it.
/// Of all others it is taken from the result, which the next operation has anyway.
CROSSOVER_HOST_DEVICE constexpr bool derivative_takes_input(Activation activation) {
  return activation == Activation::gelu || activation == Activation::gelu_tanh ||
         activation == Activation::silu || activation == Activation::hardswish;
}

/// work(constant) for the constant whose value is the activation: so a loop knows it when it is
/// compiled.
template <class Work>
void with_activation(Activation activation, const Work& work) {
  switch (activation) {
    case Activation::identity:
      return work(std::integral_constant<Activation, Activation::identity>{});
    case Activation::relu:
      return work(std::integral_constant<Activation, Activation::relu>{});
    case Activation::sigmoid:
      return work(std::integral_constant<Activation, Activation::sigmoid>{});
    case Activation::tanh:
      return work(std::integral_constant<Activation, Activation::tanh>{});
    case Activation::gelu:
      return work(std::integral_constant<Activation, Activation::gelu>{});
    case Activation::gelu_tanh:
      return work(std::integral_constant<Activation, Activation::gelu_tanh>{});
    case Activation::silu:
      return work(std::integral_constant<Activation, Activation::silu>{});
    case Activation::relu6:
      return work(std::integral_constant<Activation, Activation::relu6>{});
    case Activation::hardswish:
      return work(std::integral_constant<Activation, Activation::hardswish>{});
    case Activation::hardsigmoid:
      return work(std::integral_constant<Activation, Activation::hardsigmoid>{});
    case Activation::leaky_relu:
      return work(std::integral_constant<Activation, Activation::leaky_relu>{});
  }
}

}  // namespace crossover
