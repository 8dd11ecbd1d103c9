// SPDX-License-Identifier: Apache-2.0
#include "expect_operation.h"

#include <gtest/gtest.h>

#include <memory>

namespace crossover::test {

void expect_operation(const OperationCase& c, Program& program, Precision precision) {
  for (const TensorError& found : errors_of(c, program, precision)) {
    EXPECT_LE(found.error, found.tolerance) << "tensor '" << c.workload[found.id].name << "'";
  }
}

namespace {

bool is_missing(const Unsupported& refusal, const OperationCase& c) {
  return std::string(refusal.what())
      .ends_with(std::string(" backend has no ") + name(c.workload.steps[0].ops[0]) + " yet");
}

}  // namespace

std::string missing(const OperationCase& c, const Backend& backend) {
  try {
    static_cast<void>(backend.compile(c.workload, {.precision = stored_precision(c.workload)}));
  } catch (const Unsupported& refusal) {
    if (is_missing(refusal, c)) {
      return refusal.what();
    }
  }
  return "";
}

std::string expect_operation_or_refusal(const OperationCase& c, const Backend& backend,
                                        const CompileOptions& options) {
  std::unique_ptr<Program> program;
  try {
    program = backend.compile(c.workload, options);
  } catch (const Unsupported& refusal) {
    if (is_missing(refusal, c)) {
      return refusal.what();
    }
    EXPECT_NE(stored_precision(c.workload), Precision::f32) << refusal.what();
    EXPECT_NE(std::string(refusal.what()), "");
    return refusal.what();
  }
  expect_operation(c, *program, options.precision);
  return "";
}

}  // namespace crossover::test
