// SPDX-License-Identifier: Apache-2.0
#include "operations.h"

namespace crossover::cpu {

void lower(const Reshape& /*op*/, Lowering& /*to*/) {
  throw Unsupported("the CPU backend has no Reshape yet");
}

}  // namespace crossover::cpu
