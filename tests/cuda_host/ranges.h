// SPDX-License-Identifier: Apache-2.0
// The memory that a call of a library works on.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace cuda_host {

struct Range {
  const char* name;
  const void* from;
  std::size_t bytes;
  bool written;
  std::size_t count = 1;  ///< of as many bytes each, one `stride` behind another
  std::size_t stride = 0;
};

/// Each by itself.
std::vector<Range> one_by_one(const std::vector<Range>& ranges);

/// What the operands do wrong, in words: they leave their memory, or overlap one that is written.
/// "C" may lie where another does.
std::string fault(const std::vector<Range>& ranges);

}  // namespace cuda_host
