// SPDX-License-Identifier: Apache-2.0
#include "operations.h"

namespace crossover::cpu {

void lower(const MaxPool& /*op*/, Lowering& /*to*/) {
  throw Unsupported("the CPU backend has no MaxPool yet");
}

void lower(const MaxPoolGrad& /*op*/, Lowering& /*to*/) {
  throw Unsupported("the CPU backend has no MaxPoolGrad yet");
}

void lower(const AveragePool& /*op*/, Lowering& /*to*/) {
  throw Unsupported("the CPU backend has no AveragePool yet");
}

void lower(const AveragePoolGrad& /*op*/, Lowering& /*to*/) {
  throw Unsupported("the CPU backend has no AveragePoolGrad yet");
}

}  // namespace crossover::cpu
