// SPDX-License-Identifier: Apache-2.0
#include "fences.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "memory.h"
#include "sanitizers.h"
#include "state.h"

namespace cuda_host {
namespace {

const std::vector<Range>*& now() {
  static const std::vector<Range>* only = nullptr;
  return only;
}

const std::byte* begin_of(const Range& range) { return static_cast<const std::byte*>(range.from); }
const std::byte* end_of(const Range& range) { return begin_of(range) + range.bytes; }

/// What the ranges leave of a block. Of large gaps the ends, so that a launch costs what it
/// touches; all of a block that none lies in.
void add_gaps(const Block& block, const std::vector<Range>& sorted, std::vector<Range>& gaps) {
  constexpr std::ptrdiff_t most = std::ptrdiff_t{1} << 18U;
  const std::byte* const end = block.begin + block.bytes;
  const std::byte* at = block.begin;
  bool any = false;
  const auto add = [&](const std::byte* to) {
    if (any && to - at > 2 * most) {
      gaps.push_back({"", at, most, false});
      at = to - most;
    }
    if (at < to) {
      gaps.push_back({"", at, static_cast<std::size_t>(to - at), false});
    }
  };
  for (const Range& range : sorted) {
    if (block.begin <= begin_of(range) && begin_of(range) < end) {
      any = true;
      add(begin_of(range));
      at = std::max(at, end_of(range));
    }
  }
  add(end);
}

}  // namespace

void declare(const std::vector<Range>* ranges) { now() = ranges; }
const std::vector<Range>* declared() { return now(); }

std::vector<Range> reached(const std::vector<Range>& ranges,
                           const std::vector<const void*>& addresses) {
  std::vector<Range> found;
  std::copy_if(ranges.begin(), ranges.end(), std::back_inserter(found), [&](const Range& range) {
    return std::any_of(addresses.begin(), addresses.end(), [&](const void* address) {
      const auto* at = static_cast<const std::byte*>(address);
      return begin_of(range) <= at && at < end_of(range);
    });
  });
  return found;
}

Fence::Fence(const std::vector<Range>& ranges, const std::vector<const void*>& blocks)
    : ranges_(one_by_one(ranges)) {
  for (const Range& range : ranges_) {
    before_.emplace_back(begin_of(range), range.written ? begin_of(range) : end_of(range));
  }
  if (!state().device.blocks_apart) {  // which looks at whole blocks of memory itself
    std::vector<Range> sorted = ranges_;
    std::sort(sorted.begin(), sorted.end(),
              [](const Range& a, const Range& b) { return begin_of(a) < begin_of(b); });
    for (const void* block : blocks) {
      add_gaps(*find_block(block), sorted, gaps_);
    }
  }
  for (const Range& gap : gaps_) {
    ASAN_POISON_MEMORY_REGION(gap.from, gap.bytes);
  }
}

Fence::~Fence() {
  for (const Range& gap : gaps_) {
    ASAN_UNPOISON_MEMORY_REGION(gap.from, gap.bytes);
  }
}

std::string Fence::fault() const {
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    const std::byte* now = begin_of(ranges_[i]);
    const std::vector<std::byte>& before = before_[i];
    if (before.empty() || std::memcmp(now, before.data(), before.size()) == 0) {
      continue;
    }
    for (std::size_t at = 0; at < before.size(); ++at) {
      const std::byte* byte = now + at;
      const bool may_be_written =
          std::any_of(ranges_.begin(), ranges_.end(), [byte](const Range& other) {
            return other.written && begin_of(other) <= byte && byte < end_of(other);
          });
      if (*byte != before[at] && !may_be_written) {
        return "an operand that may only be read is written at its byte " + std::to_string(at) +
               " of " + std::to_string(before.size());
      }
    }
  }
  return {};
}

}  // namespace cuda_host
