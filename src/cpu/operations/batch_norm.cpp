// SPDX-License-Identifier: Apache-2.0
#include "operations.h"

namespace crossover::cpu {

void lower(const BatchNorm& /*op*/, Lowering& /*to*/) {
  throw Unsupported("the CPU backend has no BatchNorm yet");
}

void lower(const BatchNormGrad& /*op*/, Lowering& /*to*/) {
  throw Unsupported("the CPU backend has no BatchNormGrad yet");
}

}  // namespace crossover::cpu
