// SPDX-License-Identifier: Apache-2.0
// Activation functions between the layers of a network, which products and convolutions compute as
// well: activations-inl.h has an entry for each, functions.h computes them of single numbers.
#pragma once

#include <initializer_list>
#include <utility>
#include <vector>

#include "crossover/host_device.h"

// All activations; their names are those of files, flags and rows, which are PyTorch's. A new one
// comes last: fingerprints of networks have its number.
// clang-format off
#define CROSSOVER_ACTIVATIONS(each) \
  each(identity) each(relu) each(sigmoid) each(tanh) each(gelu) each(gelu_tanh) each(silu) \
  each(relu6) each(hardswish) each(hardsigmoid) each(leaky_relu)
// clang-format on

namespace crossover {

#define CROSSOVER_ENUMERATOR(name) name,
enum class Activation { CROSSOVER_ACTIVATIONS(CROSSOVER_ENUMERATOR) };
#undef CROSSOVER_ENUMERATOR

#define CROSSOVER_NAMED(name) {#name, Activation::name},
inline constexpr std::initializer_list<std::pair<const char*, Activation>> named_activations{
    CROSSOVER_ACTIVATIONS(CROSSOVER_NAMED)};
#undef CROSSOVER_NAMED

/// A function as oneDNN knows it, with the two numbers that it takes.
template <class Algorithm>
struct OnednnFunction {
  Algorithm algorithm;
  float alpha = 0, beta = 0;
};

#include "crossover/activations-inl.h"

/// Whether the derivative is taken from the activation's input, since its result does not tell it.
/// Of all others it is taken from the result, which the next operation has anyway.
CROSSOVER_HOST_DEVICE constexpr bool derivative_takes_input(Activation activation) {
  return with_activation(activation, [](auto of) { return decltype(of)::takes_input; });
}

}  // namespace crossover
