// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace crossover::cpu {

/// Whether the processor has modes that treat denormal numbers as zero (x86: FTZ and DAZ).
bool can_flush_denormals();

/// Lets the calling thread and `threads` workers treat denormal numbers as zero, where it can be
/// had: they appear after thousands of epochs and cost a hundred cycles each.
void flush_denormals(int threads);

}  // namespace crossover::cpu
