// SPDX-License-Identifier: Apache-2.0
// The arithmetic units alone: fused multiply-adds that touch no memory.
#pragma once

#include <cstdint>

namespace crossover::cpu {

/// Values that go through the arithmetic at once, on one thread: as many independent chains as hide
/// an instruction's latency, a vector each.
extern const std::int64_t fma_block;

/// False where this build's instructions have no fused multiply-add.
bool has_fma();

/// results[i] for positions i in [begin, end), both multiples of fma_block: see FmaProbe.
void fma(std::int64_t begin, std::int64_t end, std::int64_t length, float* results);

}  // namespace crossover::cpu
