// SPDX-License-Identifier: Apache-2.0
// Device memory that the host may not touch, and page-locked host memory.
//
// Each block has pages of its own, an inaccessible one before and after it, and ends as close to
// the last as its alignment allows; AddressSanitizer also knows its last byte. Device memory opens
// only while the device executes, so that a host that follows a device pointer crashes where it
// does. Freed memory stays inaccessible until the next reset().
#pragma once

#include <cstddef>
#include <string>

namespace cuda_host {

enum class Where { device, pinned, pageable };

struct Block {
  std::byte* begin = nullptr;
  std::size_t bytes = 0;
  Where where = Where::device;
  std::byte* pages = nullptr;
  std::size_t page_bytes = 0;
};

/// The live block that the address lies in, or null.
const Block* find_block(const void* address);
Where where_is(const void* address);

/// Whether all bytes lie in one block, or in pageable memory that begins in none.
bool is_inside(const void* address, std::size_t bytes);

/// Null where the device's memory does not hold it.
void* allocate(Where where, std::size_t bytes);
/// False where no block of that kind begins at the address.
bool release(Where where, void* address);

/// memset(), which gives large amounts of zeros back to the system: to open and close pages that
/// hold something takes its time.
void fill_bytes(void* to, int value, std::size_t bytes);

/// While one of these lives, device memory is open.
class Opened {
 public:
  Opened();
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  ~Opened();
};

std::size_t free_device_bytes();
void forget_memory();

std::string hex(const void* address);

}  // namespace cuda_host
