// SPDX-License-Identifier: Apache-2.0
// Asks what shapes and types the tensors of an operation have, and says in a sentence what does not
// fit.
#pragma once

#include <string>

#include "crossover/step.h"

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

  /// The type of a tensor that an operation calculates with.
  [[nodiscard]] Type number(Id id) const;

  /// Of tensors that may be f32 where the operation's other operands are of 16 bits.
  [[nodiscard]] Type number_or_f32(Id id, Type other) const;

  [[nodiscard]] const Workload& workload() const { return workload_; }

 private:
  const Workload& workload_;
  const char* place_;
};

}  // namespace crossover
