// SPDX-License-Identifier: Apache-2.0
#include "operations.h"

namespace crossover::cpu {

void lower(const Lstm& /*op*/, Lowering& /*to*/) {
  throw Unsupported("the CPU backend has no Lstm yet");
}

void lower(const LstmGrad& /*op*/, Lowering& /*to*/) {
  throw Unsupported("the CPU backend has no LstmGrad yet");
}

}  // namespace crossover::cpu
