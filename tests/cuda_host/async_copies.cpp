// SPDX-License-Identifier: Apache-2.0
// A copy happens at once or when its thread waits for it, by chance: a kernel that reads too early
// finds what was there before.
#include "async_copies.h"

#include <cstdint>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "include/cuda_pipeline_primitives.h"
#include "races.h"
#include "shared_memory.h"
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

/// By block and thread.
std::map<std::pair<unsigned, unsigned>, Copier>& threads() {
  static std::map<std::pair<unsigned, unsigned>, Copier> all;
  return all;
}
Copier& thread() { return threads()[{blockIdx.x, threadIdx.x}]; }

/// Whether it happens at once, which nothing speaks against.
bool begin_copy(void* shared, const void* global, std::size_t bytes) {
  const races::Aside aside;
  const auto misaligned = [bytes](const void* address) {
    return reinterpret_cast<std::uintptr_t>(address) % bytes != 0;
  };
  if ((bytes != 4 && bytes != 8 && bytes != 16) || misaligned(shared) || misaligned(global)) {
    violation("an asynchronous copy of " + std::to_string(bytes) +
              " bytes, or to or from no multiple of as many");
    return false;
  }
  if (is_shared_of_another(shared)) {
    violation("an asynchronous copy into another block's shared memory");
    return false;
  }
  thread().open.push_back({shared, global, bytes});
  return state().pick(2) == 0;
}

/// Of the thread's groups the oldest, but for so many.
std::vector<Copy> take_committed(std::size_t but_groups) {
  const races::Aside aside;
  auto& committed = thread().committed;
  std::vector<Copy> taken;
  while (committed.size() > but_groups) {
    taken.insert(taken.end(), committed.front().begin(), committed.front().end());
    committed.erase(committed.begin());
  }
  return taken;
}

}  // namespace

void copy_async(void* shared, const void* global, std::size_t bytes) {
  if (begin_copy(shared, global, bytes)) {
    std::memcpy(shared, global, bytes);
  }
}

void commit_copies() {
  const races::Aside aside;
  Copier& copier = thread();
  copier.committed.push_back(std::move(copier.open));
  copier.open.clear();
}

void wait_for_copies(std::size_t but_groups) {
  for (const Copy& copy : take_committed(but_groups)) {
    std::memcpy(copy.to, copy.from, copy.bytes);
  }
}

void forget_async_copies() { threads().clear(); }

std::string check_async_copies() {
  for (const auto& [place, copier] : threads()) {
    bool any = !copier.open.empty();
    for (const auto& group : copier.committed) {
      any |= !group.empty();
    }
    if (any) {
      return "thread " + std::to_string(place.second) +
             " ends without having waited for its asynchronous copies";
    }
  }
  return "";
}

}  // namespace cuda_host
