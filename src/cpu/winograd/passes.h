// SPDX-License-Identifier: Apache-2.0
// Convolutions as Execution::winograd runs them: which it takes, and their passes as kernels.
#pragma once

#include "../plan/lowering.h"

namespace crossover::cpu::winograd {

/// Whether this execution takes the operation: f32, windows of 3x3 that move by one pixel, images
/// in blocks of as many channels as a vector holds, and not too many channels.
bool takes(const Convolution& op, const Lowering& to);
bool takes(const ConvolutionGrad& op, const Lowering& to);

/// Whether this execution takes any of the workload's convolutions, if its threads are few enough
/// for large weights.
bool may_take_any(const Workload& workload);

/// Throws Unsupported where the workload has none of them.
void require_any(const Lowering& to);

/// Of an operation that it takes. Weights and their gradient lie plain.
void lower(const Convolution& op, Lowering& to);
void lower(const ConvolutionGrad& op, Lowering& to);

}  // namespace crossover::cpu::winograd
