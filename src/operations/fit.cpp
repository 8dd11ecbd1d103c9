// SPDX-License-Identifier: Apache-2.0
#include "fit.h"

#include <stdexcept>

namespace crossover {

void Fit::require(bool condition, const std::string& what) const {
  if (!condition) {
    throw std::invalid_argument(std::string(place_) + ": " + what);
  }
}

void Fit::expect_derivative_from_result(Activation activation) const {
  require(!derivative_takes_input(activation),
          "the result of this activation does not tell its derivative");
}

const Tensor& Fit::at(Id id) const {
  require(id >= 0 && static_cast<std::size_t>(id) < workload_.tensors.size(),
          "no tensor has the number " + std::to_string(id));
  return workload_[id];
}

void Fit::expect(Id id, const Shape& shape, Type type) const {
  const Tensor& tensor = at(id);
  require(tensor.shape == shape, "tensor '" + tensor.name + "' is " + to_string(tensor.shape) +
                                     ", not " + to_string(shape));
  require(tensor.type == type, "tensor '" + tensor.name + "' is stored as " +
                                   to_string(tensor.type) + ", not " + to_string(type));
}

Type Fit::number(Id id) const {
  const Tensor& tensor = at(id);
  require(is_float(tensor.type), "tensor '" + tensor.name + "' is stored as " +
                                     to_string(tensor.type) + ", which nothing calculates with");
  return tensor.type;
}

Type Fit::number_or_f32(Id id, Type other) const {
  const Type type = number(id);
  require(type == other || type == Type::f32, "tensor '" + at(id).name + "' is stored as " +
                                                  to_string(type) + ", not f32 or " +
                                                  to_string(other));
  return type;
}

}  // namespace crossover
