// SPDX-License-Identifier: Apache-2.0
// Every operation by itself, in the shapes that are worth testing on any backend.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "crossover/backend.h"
#include "crossover/step.h"

namespace crossover {

/// A Workload of one operation: add tensors, then set the operation.
struct OneOp {
  Workload workload;

  Id tensor(const std::string& name, const Shape& shape, Role role = Role::activation,
            Type type = Type::f32);
  OneOp& operation(Op op);
};

struct OperationCase {
  std::string name;
  Workload workload;
  std::int64_t classes = 2;  ///< of labels, tokens or steps: whole numbers below it

  friend std::ostream& operator<<(std::ostream& out, const OperationCase& c) {
    return out << c.name;
  }
};

std::vector<OperationCase> operation_cases();

/// Each function, with numbers that are not those that go unsaid.
std::vector<Function> function_examples();

/// Whether its operation is a product: what tf32 and refused epilogues make a difference to.
bool multiplies(const OperationCase& c);

/// Whether it has so many numbers that its name says so: "Linear_large_bf16".
bool is_large(const OperationCase& c);

/// Numbers in [-1, 1) that float32 holds exactly; different for each salt.
std::vector<double> numbers(std::int64_t count, int salt);

/// Numbers for a tensor of the case, such as its operation can use.
std::vector<double> values_for(const OperationCase& c, Id id);

/// |got - expected| over |expected|, Euclidean norms; the plain norm of what was got where zero is
/// expected.
struct TensorError {
  Id id = none;
  double error = 0, tolerance = 0;
};

/// Puts values into every tensor, runs the operation, and compares all tensors with the reference.
/// `precision` as compiled: of the case, or tf32.
std::vector<TensorError> errors_of(const OperationCase& c, Program& program, Precision precision);

}  // namespace crossover
