// SPDX-License-Identifier: Apache-2.0
// The place of each tensor of a Workload in one block of memory, planned the same for every device.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "crossover/step.h"

namespace crossover {

struct MemoryPlan {
  static constexpr std::int64_t alignment = 64;  ///< bytes: a cache line, and the widest vector
  /// The least multiple of it that holds so many bytes.
  static constexpr std::int64_t aligned(std::int64_t bytes) {
    return (bytes + alignment - 1) / alignment * alignment;
  }
  std::vector<std::int64_t> offset;  ///< bytes from the block's start; -1: view, or unused
  std::int64_t bytes = 0;            ///< of the whole block
};

/// Whether activations lie where others did that are needed no more.
enum class Activations { share_memory, kept };

/// Tensors of one role lie together in the order of their numbers, so that parameters, gradients
/// and optimizer states of one optimizer run in parallel. Activations share
/// memory where no step needs both at once; one that a step reads before it writes it keeps what
/// was uploaded, and one that nothing reads any more keeps its value until the step runs again.
/// Kept, each of one step has its own place.
/// `physical_bytes`: the size of each tensor in its device's layout; empty:
/// bytes(tensor). Throws std::overflow_error where the sum does not fit 63 bits.
MemoryPlan plan_memory(const Workload& workload, std::span<const std::int64_t> physical_bytes = {},
                       Activations activations = Activations::share_memory);

/// The same for a device that does not hold the data set: data tensors are not placed, and each
/// input tensor is, `buffers` times: buffer b of it lies at offset + b * input_bytes.
struct StreamedMemoryPlan {
  MemoryPlan plan;
  std::int64_t input_bytes = 0;  ///< of all inputs together, once
};
StreamedMemoryPlan plan_streamed_memory(const Workload& workload, int buffers,
                                        Activations activations = Activations::share_memory,
                                        std::span<const std::int64_t> physical_bytes = {});

}  // namespace crossover
