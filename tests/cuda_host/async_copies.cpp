// SPDX-License-Identifier: Apache-2.0
// A copy happens at once or when its thread waits for it, by chance: a kernel that reads too early
// finds what was there before.
#include "async_copies.h"

#include <cstdint>
#include <cstring>
#include <map>
#include <vector>

#include "include/cuda_pipeline_primitives.h"
#include "state.h"

namespace cuda_host {
namespace {

struct Copy {
  void* to;
  const void* from;
  std::size_t bytes;
};

struct Copier {
  std::vector<Copy> open;                    ///< not yet committed
  std::vector<std::vector<Copy>> committed;  ///< the oldest first
};

std::map<unsigned, Copier>& threads() {
  static std::map<unsigned, Copier> all;
  return all;
}

}  // namespace

void copy_async(void* shared, const void* global, std::size_t bytes) {
  const auto misaligned = [bytes](const void* address) {
    return reinterpret_cast<std::uintptr_t>(address) % bytes != 0;
  };
  if ((bytes != 4 && bytes != 8 && bytes != 16) || misaligned(shared) || misaligned(global)) {
    violation("an asynchronous copy of " + std::to_string(bytes) +
              " bytes, or to or from no multiple of as many");
    return;
  }
  if (state().pick(2) == 0) {
    std::memcpy(shared, global, bytes);
  }
  threads()[threadIdx.x].open.push_back({shared, global, bytes});
}

void commit_copies() {
  Copier& thread = threads()[threadIdx.x];
  thread.committed.push_back(std::move(thread.open));
  thread.open.clear();
}

void wait_for_copies(std::size_t but_groups) {
  auto& committed = threads()[threadIdx.x].committed;
  while (committed.size() > but_groups) {
    for (const Copy& copy : committed.front()) {
      std::memcpy(copy.to, copy.from, copy.bytes);
    }
    committed.erase(committed.begin());
  }
}

void forget_async_copies() { threads().clear(); }

std::string check_async_copies() {
  for (const auto& [number, thread] : threads()) {
    bool any = !thread.open.empty();
    for (const auto& group : thread.committed) {
      any |= !group.empty();
    }
    if (any) {
      return "thread " + std::to_string(number) +
             " ends without having waited for its asynchronous copies";
    }
  }
  return "";
}

}  // namespace cuda_host
