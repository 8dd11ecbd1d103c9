// SPDX-License-Identifier: Apache-2.0
#include "operations.h"

namespace crossover::cpu {

void lower(const GlobalAveragePool& /*op*/, Lowering& /*to*/) {
  throw Unsupported("the CPU backend has no GlobalAveragePool yet");
}

void lower(const GlobalAveragePoolGrad& /*op*/, Lowering& /*to*/) {
  throw Unsupported("the CPU backend has no GlobalAveragePoolGrad yet");
}

}  // namespace crossover::cpu
