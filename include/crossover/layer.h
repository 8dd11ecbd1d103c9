// SPDX-License-Identifier: Apache-2.0
// What every kind of layer provides. layers.h lists the layers; each is defined by a header in
// layers/ and a source of the same name in src/layers/.
#pragma once

#include <concepts>

#include "crossover/tensor.h"

namespace crossover {

class LayerShapes;    // src/layers/contexts.h: what a layer reads, and the parameters that it has
class LayerForward;   // the tensors of one batch size, and the step to append operations to
class LayerBackward;  // the same, with gradients

/// A layer is a struct of its sizes with these members. A type that lacks one does not compile
/// where the layers are listed.
///   result_may_be_f32  whether its result can be stored in f32 while its input has 16 bits
///   infer(shapes)      the shape of its result; declares its parameters and states. Throws
///                      std::invalid_argument where its inputs do not fit
///   forward(step)      appends the operations that compute its result
///   backward(step)     appends those that compute the gradients of its parameters and its inputs
template <class T>
concept LayerKindType = requires(const T& layer, LayerShapes& shapes, LayerForward& forward,
                                 LayerBackward& backward) {
  { T::result_may_be_f32 } -> std::convertible_to<bool>;
  { layer.infer(shapes) } -> std::same_as<Shape>;
  { layer.forward(forward) } -> std::same_as<void>;
  { layer.backward(backward) } -> std::same_as<void>;
};

}  // namespace crossover
