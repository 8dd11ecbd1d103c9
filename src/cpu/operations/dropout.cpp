// SPDX-License-Identifier: Apache-2.0
#include "operations.h"

namespace crossover::cpu {

void lower(const Dropout& /*op*/, Lowering& /*to*/) {
  throw Unsupported("the CPU backend has no Dropout yet");
}

void lower(const DropoutGrad& /*op*/, Lowering& /*to*/) {
  throw Unsupported("the CPU backend has no DropoutGrad yet");
}

}  // namespace crossover::cpu
