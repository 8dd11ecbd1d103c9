// SPDX-License-Identifier: Apache-2.0
// How long work takes, by the GPU's clock and by the CPU's: always the median of a few runs.
#pragma once

#include <cuda_runtime.h>

#include <functional>
#include <vector>

namespace crossover::cuda {

/// Seconds of each piece on the stream, with the pieces back to back. As one graph: of pieces that
/// are launched one by one, the time until the CPU comes with the next would count. A piece only
/// puts work into the stream; its code must have been loaded.
std::vector<double> device_seconds(cudaStream_t stream,
                                   const std::vector<std::function<void()>>& pieces);

/// Seconds that the CPU spends in `timed`; `after` is not timed.
double host_seconds(
    const std::function<void()>& timed, const std::function<void()>& after = [] {});

}  // namespace crossover::cuda
