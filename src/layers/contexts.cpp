// SPDX-License-Identifier: Apache-2.0
#include "contexts.h"

#include <stdexcept>

namespace crossover {
namespace {

Id add_activation(Workload& workload, std::string name, const Shape& shape, Type type) {
  return workload.add(
      {.name = std::move(name), .shape = shape, .type = type, .role = Role::activation});
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

const Shape& LayerShapes::image() const {
  const Shape& shape = input();
  require(shape.size() == 4 && shape.front() == any_batch,
          "reads images of channels, height and width");
  return shape;
}

const Shape& LayerShapes::sequence() const {
  const Shape& shape = input();
  require(shape.size() == 3 && shape[1] == any_batch, "reads sequences of vectors, time first");
  return shape;
}

Shape LayerShapes::image_behind(const Window& window, std::int64_t channels) const {
  const Shape& before = image();
  Shape shape = windowed(window, before, channels);
  require(shape[2] > 0 && shape[3] > 0,
          "has a window of " + to_string(window.size) + " with padding " +
              to_string(window.padding) + ", larger than the image of " +
              std::to_string(before[2]) + " x " + std::to_string(before[3]));
  return shape;
}

void LayerShapes::parameter(const std::string& name, Shape shape, Start start, ReadAs read_as) {
  parameters_.push_back({.tensor = {.name = layer_ + " " + name,
                                    .shape = std::move(shape),
                                    .role = Role::parameter,
                                    .start = start},
                         .read_as = read_as});
}

void LayerShapes::tied_parameter(LayerNumber embedding, Shape shape) {
  parameters_.push_back({.tensor = {.name = "", .shape = std::move(shape)}, .tied = embedding});
}

void LayerShapes::state(const std::string& name, Shape shape, Type type) {
  states_.push_back(
      {.name = layer_ + " " + name, .shape = std::move(shape), .type = type, .role = Role::state});
}

Id LayerForward::save(const std::string& name, const Shape& shape, Type type) {
  std::vector<Id>& saved = *tensors().saved;
  if (saved_ == saved.size()) {
    saved.push_back(add_activation(workload(), tensors().name + " " + name, shape, type));
  }
  return saved.at(saved_++);
}

Id LayerBackward::dx(std::size_t i) {
  if (!asked_.at(i)) {
    return none;
  }
  const Tensor& value = tensor(x(i));
  const Id made = add_activation(workload(), "d" + value.name, Shape(value.shape), gradient_type_);
  given_.emplace_back(i, made);
  return made;
}

Id LayerBackward::gradient(std::size_t i) {
  const Id sum = accumulated_gradient(i);
  if (!is_trained(i) || !adds_to(i)) {
    return sum;
  }
  const Tensor& of = tensor(sum);
  const Id made = add_activation(workload(), of.name + " of the step", Shape(of.shape), of.type);
  to_add_.emplace_back(made, sum);
  return made;
}

Id LayerBackward::gradient_or_scratch(std::size_t i) {
  if (is_trained(i)) {
    return gradient(i);
  }
  const Tensor& of = tensor(parameter(i));
  return scratch("unread gradient " + std::to_string(i), Shape(of.shape), Type::f32);
}

void LayerBackward::finish() {
  for (const auto& [gradient, sum] : to_add_) {
    emit(Add{.a = sum, .b = gradient, .y = sum});
  }
}

Id LayerBackward::scratch(const std::string& name, const Shape& shape, Type type) {
  return add_activation(workload(), tensors().name + " " + name, shape, type);
}

void LayerBackward::pass(std::size_t i, Id gradient) {
  if (asked_.at(i)) {
    given_.emplace_back(i, gradient);
  }
}

}  // namespace crossover
