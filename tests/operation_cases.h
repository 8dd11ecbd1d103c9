// SPDX-License-Identifier: Apache-2.0
// Every operation by itself, in the shapes that are worth testing on any backend.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "crossover/backend.h"
#include "crossover/step.h"

namespace crossover::test {

struct OperationCase {
  std::string name;
  Workload workload;
  std::int64_t classes = 2;  ///< of labels, tokens or steps: whole numbers below it

  friend std::ostream& operator<<(std::ostream& out, const OperationCase& c) {
    return out << c.name;
  }
};

std::vector<OperationCase> operation_cases();

/// Whether its operation is a product: what tf32 and refused epilogues make a difference to.
bool multiplies(const OperationCase& c);

/// Numbers for a tensor of the case, such as its operation can use.
std::vector<double> values_for(const OperationCase& c, Id id);

/// Puts them into every tensor, runs the operation, and compares all tensors with the reference.
/// `precision` as compiled: of the case, or tf32.
void expect_operation(const OperationCase& c, Program& program, Precision precision);

/// What a backend says that has no such operation yet; else nothing.
std::string missing(const OperationCase& c, const Backend& backend);

/// Compiles the case and expects it to be right. A library may lack products of 16 bits: then the
/// sentence that says so, which is to name the product; or what missing() says; else nothing.
std::string expect_operation_or_refusal(const OperationCase& c, const Backend& backend,
                                        const CompileOptions& options);

}  // namespace crossover::test
