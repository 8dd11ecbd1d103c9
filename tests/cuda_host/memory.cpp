// SPDX-License-Identifier: Apache-2.0
#include "memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <new>
#include <sstream>
#include <vector>

#include "sanitizers.h"
#include "state.h"

namespace cuda_host {
namespace {

constexpr std::size_t alignment = 256;  // as cudaMalloc's

struct Memory {
  std::map<std::uintptr_t, Block> blocks;  ///< by their first byte
  std::vector<Block> closed;               ///< freed
  std::size_t device_bytes = 0;
  int opened = 0;
};

Memory& memory() {
  static Memory only;
  return only;
}

std::uintptr_t number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

std::size_t round_up(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

void protect(const Block& block, int protection) {
  if (block.where == Where::device) {
    mprotect(block.pages, block.page_bytes, protection);
  }
}

std::size_t page_size() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

void close(const Block& block) {
  ASAN_UNPOISON_MEMORY_REGION(block.pages, block.page_bytes);
  mprotect(block.pages, block.page_bytes, PROT_NONE);
  madvise(block.pages, block.page_bytes, MADV_DONTNEED);
}

/// Gives the addresses back as well: what AddressSanitizer keeps for them would add up.
void unmap(const Block& block) {
  munmap(block.pages - page_size(), block.page_bytes + 2 * page_size());
}

}  // namespace

const Block* find_block(const void* address) {
  const auto& blocks = memory().blocks;
  auto next = blocks.upper_bound(number(address));
  if (next == blocks.begin()) {
    return nullptr;
  }
  const Block& block = std::prev(next)->second;
  return number(address) < number(block.begin) + block.bytes ? &block : nullptr;
}

Where where_is(const void* address) {
  const Block* block = find_block(address);
  return block != nullptr ? block->where : Where::pageable;
}

bool is_inside(const void* address, std::size_t bytes) {
  const Block* block = find_block(address);
  return block == nullptr || number(address) + bytes <= number(block->begin) + block->bytes;
}

std::size_t free_device_bytes() {
  const Device& device = state().device;
  const std::size_t taken = memory().device_bytes + device.bytes_of_others;
  return taken < device.bytes ? device.bytes - taken : 0;
}

std::size_t live_device_bytes() { return memory().device_bytes; }

void* allocate(Where where, std::size_t bytes) {
  if (where == Where::device && bytes > free_device_bytes()) {
    return nullptr;
  }
  const std::size_t page = page_size();
  const std::size_t page_bytes = round_up(round_up(bytes, alignment), page);
  void* reserved = mmap(nullptr, page_bytes + 2 * page, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) {
    return nullptr;
  }
  Block block{.begin = nullptr,
              .bytes = bytes,
              .where = where,
              .pages = static_cast<std::byte*>(reserved) + page,
              .page_bytes = page_bytes};
  block.begin = block.pages + page_bytes - round_up(bytes, alignment);
  mprotect(block.pages, page_bytes, PROT_READ | PROT_WRITE);
  // As floats, what was never written is no number; but for the far end of large blocks.
  constexpr std::size_t most_garbage = std::size_t{1} << 17U;
  std::memset(block.begin, 0xff, std::min(bytes, most_garbage));
  ASAN_POISON_MEMORY_REGION(block.pages, static_cast<std::size_t>(block.begin - block.pages));
  ASAN_POISON_MEMORY_REGION(block.begin + bytes, round_up(bytes, alignment) - bytes);
  if (memory().opened == 0) {
    protect(block, PROT_NONE);
  }
  memory().blocks[number(block.begin)] = block;
  memory().device_bytes += where == Where::device ? bytes : 0;
  return block.begin;
}

bool release(Where where, void* address) {
  const auto found = memory().blocks.find(number(address));
  if (found == memory().blocks.end() || found->second.where != where) {
    return false;
  }
  memory().device_bytes -= where == Where::device ? found->second.bytes : 0;
  close(found->second);
  memory().closed.push_back(found->second);
  memory().blocks.erase(found);
  return true;
}

void fill_bytes(void* to, int value, std::size_t bytes) {
  const std::size_t page = page_size();
  auto* const begin = static_cast<std::byte*>(to);
  const std::size_t before = round_up(number(to), page) - number(to);
  const std::size_t few = 16 * page;
  if (value != 0 || bytes < before + few) {
    std::memset(to, value, bytes);
    return;
  }
  const std::size_t whole = (bytes - before) / page * page;
  std::memset(to, 0, before);
  madvise(begin + before, whole, MADV_DONTNEED);
  std::memset(begin + before + whole, 0, bytes - before - whole);
}

Opened::Opened() {
  if (memory().opened++ == 0) {
    for (const auto& [at, block] : memory().blocks) {
      protect(block, PROT_READ | PROT_WRITE);
    }
  }
}

Opened::~Opened() {
  if (--memory().opened == 0) {
    for (const auto& [at, block] : memory().blocks) {
      protect(block, PROT_NONE);
    }
  }
}

void forget_memory() {
  for (const auto& [at, block] : memory().blocks) {
    close(block);
    unmap(block);
  }
  for (const Block& block : memory().closed) {
    unmap(block);
  }
  memory() = Memory{};
}

std::string hex(const void* address) {
  std::ostringstream text;
  text << address;
  return text.str();
}

}  // namespace cuda_host
