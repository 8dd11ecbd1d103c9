// SPDX-License-Identifier: Apache-2.0
// Memory of a Program or a probe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "crossover/backend.h"
#include "crossover/memory.h"
#include "loops.h"

namespace crossover::cpu {

struct Free {
  void operator()(std::byte* memory) const noexcept {
    std::free(memory);  // NOLINT(cppcoreguidelines-no-malloc,cppcoreguidelines-owning-memory)
  }
};
using Block = std::unique_ptr<std::byte, Free>;

/// Aligned and zero, each part touched first by the thread that will use it; throws OutOfMemory.
inline Block allocate(std::int64_t bytes, int threads) {
  const std::int64_t rounded = (bytes / MemoryPlan::alignment + 1) * MemoryPlan::alignment;
  Block block(static_cast<std::byte*>(std::aligned_alloc(
      static_cast<std::size_t>(MemoryPlan::alignment), static_cast<std::size_t>(rounded))));
  if (!block) {
    throw OutOfMemory("the CPU's memory does not hold " + std::to_string(bytes) + " bytes");
  }
  clear(threads, block.get(), rounded);
  return block;
}

}  // namespace crossover::cpu
