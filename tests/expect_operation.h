// SPDX-License-Identifier: Apache-2.0
// What a backend makes of the cases of operations.
#pragma once

#include <string>

#include "crossover/operation_cases.h"

namespace crossover::test {

/// errors_of() the case are within their tolerances.
void expect_operation(const OperationCase& c, Program& program, Precision precision);

/// What a backend says that has no such operation yet; else nothing.
std::string missing(const OperationCase& c, const Backend& backend);

/// Compiles the case and expects it to be right. A library may lack products of 16 bits: then the
/// sentence that says so, which is to name the product; or what missing() says; else nothing.
std::string expect_operation_or_refusal(const OperationCase& c, const Backend& backend,
                                        const CompileOptions& options);

}  // namespace crossover::test
