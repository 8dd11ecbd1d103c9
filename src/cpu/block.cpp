// SPDX-License-Identifier: Apache-2.0
#include "block.h"

#include <cstring>
#include <string>

#include "crossover/backend.h"
#include "crossover/memory.h"
#include "split.h"

namespace crossover::cpu {

Block allocate(std::int64_t bytes, int threads) {
  const std::int64_t rounded = (bytes / MemoryPlan::alignment + 1) * MemoryPlan::alignment;
  Block block(static_cast<std::byte*>(std::aligned_alloc(
      static_cast<std::size_t>(MemoryPlan::alignment), static_cast<std::size_t>(rounded))));
  if (!block) {
    throw OutOfMemory("the CPU's memory does not hold " + std::to_string(bytes) + " bytes");
  }
  clear(threads, block.get(), rounded);
  return block;
}

void clear(int threads, void* memory, std::int64_t bytes) {
  auto* at = static_cast<char*>(memory);
  split(threads, bytes, [=](std::int64_t begin, std::int64_t end) {
    std::memset(at + begin, 0, static_cast<std::size_t>(end - begin));
  });
}

}  // namespace crossover::cpu
