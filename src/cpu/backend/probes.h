// SPDX-License-Identifier: Apache-2.0
// What a CPU has of the probes.
#pragma once

#include <cstdint>
#include <memory>

#include "crossover/probe.h"

namespace crossover::cpu {

/// See Backend::make_probe().
std::unique_ptr<Probe> make_probe(const ProbeSpec& spec);

/// A square matrix product. Throws Unsupported where oneDNN has none in that precision.
std::unique_ptr<Probe> make_matrix_probe(const MatrixProbe& spec);

// ---- The arithmetic units alone: fused multiply-adds that touch no memory.

/// Values that go through the arithmetic at once, on one thread: of any processor's vectors a
/// multiple of as many independent chains as hide an instruction's latency.
inline constexpr std::int64_t fma_block = 384;

/// results[i] for positions i in [begin, end), both multiples of fma_block: see FmaProbe.
using FusedMultiplyAdds = void (*)(std::int64_t begin, std::int64_t end, std::int64_t length,
                                   float* results);

/// Null where the processor has none.
FusedMultiplyAdds best_fused_multiply_adds();

}  // namespace crossover::cpu
