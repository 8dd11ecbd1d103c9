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

/// Values that go through the arithmetic at once, on one thread: as many independent chains as hide
/// an instruction's latency, a vector each.
extern const std::int64_t fma_block;

/// False where this build's instructions have no fused multiply-add.
bool has_fma();

/// results[i] for positions i in [begin, end), both multiples of fma_block: see FmaProbe.
void fma(std::int64_t begin, std::int64_t end, std::int64_t length, float* results);

}  // namespace crossover::cpu
