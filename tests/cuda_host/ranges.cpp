// SPDX-License-Identifier: Apache-2.0
#include "ranges.h"

#include <string_view>

#include "memory.h"

namespace cuda_host {
namespace {

bool overlap(const Range& a, const Range& b) {
  const auto* a_from = static_cast<const std::byte*>(a.from);
  const auto* b_from = static_cast<const std::byte*>(b.from);
  return a_from < b_from + b.bytes && b_from < a_from + a.bytes;
}

}  // namespace

std::vector<Range> one_by_one(const std::vector<Range>& ranges) {
  std::vector<Range> all;
  for (const Range& range : ranges) {
    for (std::size_t i = 0; i < range.count; ++i) {
      const auto* from = static_cast<const std::byte*>(range.from) + i * range.stride;
      all.push_back({range.name, from, range.bytes, range.written});
    }
  }
  return all;
}

std::string fault(const std::vector<Range>& of) {
  const std::vector<Range> ranges = one_by_one(of);
  for (const Range& range : ranges) {
    if (where_is(range.from) == Where::pageable) {
      return std::string(range.name) + " lies in no device or pinned memory";
    }
    if (!is_inside(range.from, range.bytes)) {
      return std::string(range.name) + " runs over the end of its block";
    }
    for (const Range& other : ranges) {
      if (&other != &range && range.written && overlap(range, other) &&
          !(other.from == range.from && std::string_view(other.name) == "C")) {
        return std::string(range.name) + " is written and overlaps " + other.name;
      }
    }
  }
  return {};
}

}  // namespace cuda_host
