// SPDX-License-Identifier: Apache-2.0
#include "operations.h"

namespace crossover::cpu {

void lower(const Embedding& /*op*/, Lowering& /*to*/) {
  throw Unsupported("the CPU backend has no Embedding yet");
}

void lower(const EmbeddingGrad& /*op*/, Lowering& /*to*/) {
  throw Unsupported("the CPU backend has no EmbeddingGrad yet");
}

}  // namespace crossover::cpu
