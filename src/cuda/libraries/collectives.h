// SPDX-License-Identifier: Apache-2.0
// Sums over ranks, each with a GPU of its own, as their library makes them: all that programs know
// of it.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "crossover/ranks.h"

namespace crossover::cuda {

/// Where values lie on the device.
struct FloatSpan {
  float* first = nullptr;
  std::int64_t count = 0;
};

class Collectives {
 public:
  Collectives() = default;
  Collectives(const Collectives&) = delete;
  Collectives& operator=(const Collectives&) = delete;
  virtual ~Collectives() = default;

  /// Puts into the stream, or into what captures it: each value becomes its sum over all ranks. The
  /// ranks make the same calls in the same order. Throws std::runtime_error.
  virtual void sum(std::span<const FloatSpan> spans, cudaStream_t stream) = 0;
};

/// NCCL's, on the calling thread's device; ready, so that no later call waits for what only a first
/// one does. All ranks call it at once. Throws Unsupported without NCCL, and
/// std::runtime_error with the call that failed and what NCCL says of it.
std::unique_ptr<Collectives> make_nccl(Ranks& ranks);

/// "2.28.9"; empty in a build without NCCL.
std::string nccl_version();

}  // namespace crossover::cuda
