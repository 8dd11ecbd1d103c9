// SPDX-License-Identifier: Apache-2.0
#include "rearrange.h"

#include <limits>

#include "grid.cuh"
#include "site.h"

namespace crossover::cuda {
namespace {

/// Neighbouring threads write neighbours where the last extent does. Index is 32 bits wide where
/// that is enough: a GPU divides these several times faster.
template <class T, class Index>
__global__ void rearrange_kernel(const T* from, T* to, std::int64_t count, CopiedExtents extents) {
  for (std::int64_t i = thread_index(); i < count; i += thread_count()) {
    auto rest = static_cast<Index>(i);
    std::int64_t read = 0;
    std::int64_t write = 0;
    for (int e = extents.used; e-- > 0;) {
      const auto extent = static_cast<Index>(extents.count[e]);
      const auto at = static_cast<std::int64_t>(rest % extent);
      rest /= extent;
      read += at * extents.from[e];
      write += at * extents.to[e];
    }
    to[write] = from[read];
  }
}

template <class T>
void rearrange(const RearrangeArguments<Called>& of, const Site& site) {
  const T* from = static_cast<const T*>(of.from) + of.from_first;
  T* to = static_cast<T*>(of.to) + of.to_first;
  const auto start = [&](auto* kernel) {
    launch(kernel, grid_for(of.count), site.stream, from, to, of.count, of.extents);
  };
  of.count <= std::numeric_limits<std::uint32_t>::max() ? start(rearrange_kernel<T, std::uint32_t>)
                                                        : start(rearrange_kernel<T, std::uint64_t>);
}

}  // namespace

void call(const RearrangeArguments<Called>& of, const Site& site) {
  bytes(of.from.type) == sizeof(std::uint16_t) ? rearrange<std::uint16_t>(of, site)
                                               : rearrange<std::uint32_t>(of, site);
}

}  // namespace crossover::cuda
