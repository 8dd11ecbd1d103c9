// SPDX-License-Identifier: Apache-2.0
// What a GPU has of the probes.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>

#include "crossover/probe.h"
#include "crossover/tensor.h"

namespace crossover::cuda {

/// See Backend::make_probe().
std::unique_ptr<Probe> make_probe(const ProbeSpec& spec, const cudaDeviceProp& device);

// ---- Their kernels. Arrays are f32 where no type is said, and in device memory; each function
// puts its work into the stream and returns.

void empty(cudaStream_t stream);

/// See FmaProbe.
void fma(cudaStream_t stream, std::int64_t values, std::int64_t length, float* results);

/// a = b + triad_factor * c. All begin at multiples of 16 bytes.
void triad(cudaStream_t stream, const float* b, const float* c, float* a, std::int64_t values);
void fill_triad(cudaStream_t stream, float* b, float* c, std::int64_t values);

/// Row-major [size, size], of float, Bf16 or F16.
void fill_matrices(cudaStream_t stream, Type type, void* a, void* b, std::int64_t size);

}  // namespace crossover::cuda
