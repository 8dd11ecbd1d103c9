// SPDX-License-Identifier: Apache-2.0
// What every kind of layer provides. layers.h has the layers; src/layers/ has a source for each
// theme of them.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <type_traits>
#include <utility>

#include "crossover/tensor.h"

namespace crossover {

class LayerShapes;    // src/layers/contexts.h: what a layer reads, and the parameters that it has
class LayerForward;   // the tensors of one batch size, and the step to append operations to
class LayerBackward;  // the same, with gradients

/// Of a layer that another one names: its place in the network, from 0.
using LayerNumber = int;
inline constexpr LayerNumber no_layer = -1;

/// Sees how files write a layer, and sets the layer where it reads one: first its type, then each
/// parameter, which may be absent where it has a value for that case (network_file.h).
struct LayerVisitor {
  void type(const char* name);
  /// Of a layer that has several, by one of its members.
  template <class Member>
  void type(Member& member,
            std::initializer_list<std::pair<const char*, std::remove_const_t<Member>>> names);
  void size(const char* name, std::int64_t& value);  ///< at least one
  void size(const char* name, std::int64_t& value, std::int64_t absent);
  void count(const char* name, std::int64_t& value, std::int64_t absent);  ///< at least zero
  void size(const char* name, Pair& value);  ///< a number for both, or one for each direction
  void size(const char* name, Pair& value, const Pair& absent);
  void count(const char* name, Pair& value, const Pair& absent);  ///< each at least zero
  void sizes(const char* name, Shape& value);                     ///< a list, each at least one
  void steps(const char* name, Shape& value);  ///< a list of whole numbers, also below zero
  void flag(const char* name, bool& value, bool absent);
  void number(const char* name, double& value);
  void number(const char* name, double& value, double absent);  ///< above zero
  void any_number(const char* name, double& value, double absent);
  void any_count(const char* name, std::int64_t& value, std::int64_t absent);  ///< or below zero
  void layer(const char* name, LayerNumber& value);  ///< one before it, or no_layer
};

template <class T>
concept HasType = requires {
  T::type;
};

/// Shows a layer to a LayerVisitor, or a class like it: its type, then its parameters.
template <class Kind, class See>
void show(Kind& layer, See& see) {
  if constexpr (HasType<Kind>) {
    see.type(Kind::type);
  }
  if constexpr (requires { Kind::describe(layer, see); }) {
    Kind::describe(layer, see);
  }
}

/// A layer is a struct of its sizes with these members. A type that lacks one does not compile
/// where the layers are listed.
///   type               as files call it; one that has several shows them in describe()
///   describe(layer, see)  its parameters, if it has any, for a LayerVisitor or a class like it
///   infer(shapes)      the shape of its result; declares its parameters and states. Throws
///                      std::invalid_argument where its inputs do not fit
///   forward(step)      appends the operations that compute its result
///   backward(step)     appends those that compute the gradients of its parameters and its inputs
/// One whose result can be stored in f32 while its input has 16 bits says so: result_may_be_f32.
template <class T>
concept LayerKindType = requires(const T& layer, T& read, LayerVisitor& see, LayerShapes& shapes,
                                 LayerForward& forward, LayerBackward& backward) {
  requires HasType<T> || requires { T::describe(read, see); };
  { layer.infer(shapes) } -> std::same_as<Shape>;
  { layer.forward(forward) } -> std::same_as<void>;
  { layer.backward(backward) } -> std::same_as<void>;
};

}  // namespace crossover
