// SPDX-License-Identifier: Apache-2.0
#include "operations.h"

namespace crossover::cpu {

void lower(const Convolution& /*op*/, Lowering& /*to*/) {
  throw Unsupported("the CPU backend has no Convolution yet");
}

void lower(const ConvolutionGrad& /*op*/, Lowering& /*to*/) {
  throw Unsupported("the CPU backend has no ConvolutionGrad yet");
}

}  // namespace crossover::cpu
