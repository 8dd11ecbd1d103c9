// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace crossover::cpu {

/// Lets the calling thread and `threads` workers treat denormal numbers as zero (x86: FTZ and DAZ):
/// they appear after thousands of epochs and cost a hundred cycles each. False where the processor
/// has no such mode.
bool flush_denormals(int threads);

}  // namespace crossover::cpu
