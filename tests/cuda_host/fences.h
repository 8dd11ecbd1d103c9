// SPDX-License-Identifier: Apache-2.0
// Around an operation of the device: it may touch only what its launch has declared.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "ranges.h"

namespace cuda_host {

/// Of what is put into streams from now on; null: anything. They must live as long.
void declare(const std::vector<Range>* ranges);
const std::vector<Range>* declared();

/// Those that an address lies in: a kernel knows of no other.
std::vector<Range> reached(const std::vector<Range>& ranges,
                           const std::vector<const void*>& addresses);

/// AddressSanitizer stops at the first access elsewhere in their blocks, up to a distance from what
/// is declared; what is only read is compared in any build.
class Fence {
 public:
  Fence(const std::vector<Range>& ranges, const std::vector<const void*>& blocks);
  Fence(const Fence&) = delete;
  Fence& operator=(const Fence&) = delete;
  ~Fence();

  /// What was written that may only be read, in words; empty where nothing was.
  [[nodiscard]] std::string fault() const;

 private:
  const std::vector<Range> ranges_;
  std::vector<Range> gaps_;
  std::vector<std::vector<std::byte>> before_;  ///< of each range that is only read
};

}  // namespace cuda_host
