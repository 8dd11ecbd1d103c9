// SPDX-License-Identifier: Apache-2.0
// What operations ask alike of the tensors that they have: which shapes and types, with a sentence
// that says what does not fit; and what they count.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "crossover/step.h"
#include "crossover/tensor.h"

namespace crossover {

class Fit {
 public:
  /// `place` begins the sentences: the name of an operation, or what else is checked.
  Fit(const Workload& workload, const char* place) : workload_(workload), place_(place) {}

  /// All of these throw std::invalid_argument.
  void require(bool condition, const std::string& what) const;

  /// That the derivative of an activation can be taken from its result.
  void expect_derivative_from_result(Activation activation) const;

  /// The tensor of that number.
  [[nodiscard]] const Tensor& at(Id id) const;

  void expect(Id id, const Shape& shape, Type type = Type::f32) const;

  /// The same of a tensor that may be none.
  void expect_if_any(Id id, const Shape& shape, Type type = Type::f32) const {
    if (id != none) {
      expect(id, shape, type);
    }
  }

  /// The type of a tensor that an operation calculates with.
  [[nodiscard]] Type number(Id id) const;

  /// Of tensors that may be f32 where the operation's other operands are of 16 bits.
  [[nodiscard]] Type number_or_f32(Id id, Type other) const;

  [[nodiscard]] const Workload& workload() const { return workload_; }

 private:
  const Workload& workload_;
  const char* place_;
};

// ---- What operations on images [batch, channels, height, width] ask alike.

/// The shape of tensor `id`; throws std::invalid_argument where it is no image.
inline const Shape& image(const Fit& fit, Id id) {
  const Tensor& tensor = fit.at(id);
  fit.require(tensor.shape.size() == 4, "tensor '" + tensor.name + "' " + to_string(tensor.shape) +
                                            " is not [batch, channels, height, width]");
  return tensor.shape;
}

/// What a window makes of an image, with `channels` channels. Throws std::invalid_argument where
/// the window does not fit.
inline Shape result_of(const Fit& fit, const Window& window, const Shape& image,
                       std::int64_t channels) {
  const auto slides = [](const Slide& slide) {
    return slide.size > 0 && slide.stride > 0 && slide.dilation > 0 && slide.padding >= 0 &&
           slide.padding < extent(slide);
  };
  fit.require(slides(window.down()) && slides(window.across()),
              "a window needs a size, a stride and a dilation of at least one, and less padding "
              "than its extent");
  Shape result = windowed(window, image, channels);
  fit.require(result[2] > 0 && result[3] > 0, "a window of " + to_string(window.size) +
                                                  " with padding " + to_string(window.padding) +
                                                  " does not fit into " + to_string(image));
  return result;
}

// ---- What they count alike.

/// Elements of a tensor; 0 where there is none.
inline double count(const Workload& workload, Id id) {
  return id == none ? 0.0 : static_cast<double>(elements(workload[id].shape));
}

/// Of all of them together.
inline double count(const Workload& workload, const std::vector<Id>& ids) {
  double sum = 0;
  for (const Id id : ids) {
    sum += count(workload, id);
  }
  return sum;
}

inline double flops(Activation activation) {
  return with_activation(activation, [](auto of) { return of.flops; });
}

/// With the product by the gradient.
inline double derivative_flops(Activation activation) {
  return with_activation(activation, [](auto of) { return of.derivative_flops; });
}

}  // namespace crossover
