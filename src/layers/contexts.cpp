// SPDX-License-Identifier: Apache-2.0
#include "contexts.h"

#include <stdexcept>

namespace crossover {
namespace {

Id add_activation(Workload& workload, std::string name, const Shape& shape, Type type) {
  workload.tensors.push_back(
      {.name = std::move(name), .shape = shape, .type = type, .role = Role::activation});
  return static_cast<Id>(workload.tensors.size()) - 1;
}

}  // namespace

const Shape& LayerShapes::input(std::size_t i, std::size_t count) const {
  require(inputs_.size() == count,
          "reads " + std::to_string(inputs_.size()) + " values, not " + std::to_string(count));
  return inputs_[i];
}

void LayerShapes::require(bool condition, const std::string& what) const {
  if (!condition) {
    throw std::invalid_argument("model '" + model_ + "': " + layer_ + " " + what);
  }
}

void LayerShapes::parameter(const std::string& name, Shape shape, Start start, bool as_result) {
  parameters_.push_back({.tensor = {.name = layer_ + " " + name,
                                    .shape = std::move(shape),
                                    .role = Role::parameter,
                                    .start = start},
                         .as_result = as_result});
}

Id LayerForward::save(const std::string& name, const Shape& shape, Type type) {
  std::vector<Id>& saved = *tensors_.saved;
  if (saved_ == saved.size()) {
    saved.push_back(add_activation(workload_, tensors_.name + " " + name, shape, type));
  }
  return saved.at(saved_++);
}

Id LayerBackward::dx(std::size_t i) {
  if (!asked_.at(i)) {
    return none;
  }
  const Tensor& value = workload_[x(i)];
  const Id made = add_activation(workload_, "d" + value.name, Shape(value.shape), gradient_type_);
  given_.emplace_back(i, made);
  return made;
}

void LayerBackward::pass(std::size_t i, Id gradient) {
  if (asked_.at(i)) {
    given_.emplace_back(i, gradient);
  }
}

}  // namespace crossover
