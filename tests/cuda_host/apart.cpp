// SPDX-License-Identifier: Apache-2.0
#include "apart.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>

#include "memory.h"

namespace cuda_host {
namespace {

using Bytes = std::vector<std::byte>;

/// A block of memory, what it held, and what the kernel's blocks have made of it so far.
class Watched {
 public:
  explicit Watched(const Block& block)
      : block_(block), before_(block.begin, block.begin + block.bytes), after_(before_) {}

  /// Takes what `writer` has changed, and undoes it. Returns an address that another has written.
  const std::byte* take(unsigned writer) {
    const std::byte* twice = nullptr;
    each_difference(before_, [&](std::size_t at) {
      if (!writers_.try_emplace(at, writer).second) {
        twice = block_.begin + at;
        other_ = writers_[at];
      }
      after_[at] = block_.begin[at];
      block_.begin[at] = before_[at];
    });
    return twice;
  }
  [[nodiscard]] unsigned other() const { return other_; }

  [[nodiscard]] const std::byte* difference_from_all_apart() const {
    const std::byte* found = nullptr;
    each_difference(after_, [&](std::size_t at) { found = block_.begin + at; });
    return found;
  }

 private:
  template <class Found>
  void each_difference(const Bytes& from, const Found& found) const {
    constexpr std::size_t chunk = 4096;
    for (std::size_t first = 0; first < block_.bytes; first += chunk) {
      const std::size_t count = std::min(chunk, block_.bytes - first);
      if (std::memcmp(block_.begin + first, from.data() + first, count) == 0) {
        continue;
      }
      for (std::size_t at = first; at < first + count; ++at) {
        if (block_.begin[at] != from[at]) {
          found(at);
        }
      }
    }
  }

  Block block_;
  Bytes before_, after_;
  std::map<std::size_t, unsigned> writers_;  ///< by byte
  unsigned other_ = 0;
};

}  // namespace

std::string run_apart(const std::vector<unsigned>& blocks, const std::vector<const void*>& memory,
                      const std::function<std::string(unsigned block)>& run) {
  std::vector<Watched> watched;
  for (const void* begin : memory) {
    watched.emplace_back(*find_block(begin));
  }
  for (const unsigned block : blocks) {
    if (const std::string error = run(block); !error.empty()) {
      return error;
    }
    for (Watched& one : watched) {
      if (const std::byte* twice = one.take(block); twice != nullptr) {
        return "blocks " + std::to_string(one.other()) + " and " + std::to_string(block) +
               " both write to " + hex(twice);
      }
    }
  }
  for (const unsigned block : blocks) {
    if (const std::string error = run(block); !error.empty()) {
      return error;
    }
  }
  for (const Watched& one : watched) {
    if (const std::byte* at = one.difference_from_all_apart(); at != nullptr) {
      return "a block reads what another writes: " + hex(at) + " depends on their order";
    }
  }
  return "";
}

}  // namespace cuda_host
