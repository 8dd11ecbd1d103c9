// SPDX-License-Identifier: Apache-2.0
// Memory of a Program or a probe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

namespace crossover::cpu {

struct Free {
  void operator()(std::byte* memory) const noexcept {
    std::free(memory);  // NOLINT(cppcoreguidelines-no-malloc,cppcoreguidelines-owning-memory)
  }
};
using Block = std::unique_ptr<std::byte, Free>;

/// Aligned and zero, each part touched first by the thread that will use it; throws OutOfMemory.
Block allocate(std::int64_t bytes, int threads);

/// Sets bytes to zero, each by the thread that will use it, so that memory lies near its core.
void clear(int threads, void* memory, std::int64_t bytes);

}  // namespace crossover::cpu
