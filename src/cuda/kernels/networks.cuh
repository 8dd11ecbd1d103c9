// SPDX-License-Identifier: Apache-2.0
// Kernels that do the same for each of several networks: the second dimension of the grid is the
// network. Arguments are addresses of the first one's, as where there is one alone.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include "../base/site.h"
#include "../plan/launches/operand.h"
#include "grid.cuh"

namespace crossover::cuda {

/// The same in the memory of the thread's network. Not of null.
template <class T>
__device__ T* of_network(T* of_first, std::int64_t stride) {
  using Byte = std::conditional_t<std::is_const_v<T>, const char, char>;
  return reinterpret_cast<T*>(reinterpret_cast<Byte*>(of_first) + blockIdx.y * stride);
}
inline __device__ Address of_network(const Address& of_first, std::int64_t stride) {
  return {of_network(static_cast<char*>(of_first.at), stride), of_first.type};
}

/// The kernel's last parameter is the stride.
template <class... P, class... A>
void launch_for_networks(void (*kernel)(P...), Grid grid, const Site& site, A&&... args) {
  grid.networks = static_cast<unsigned>(site.networks.count);
  launch(kernel, grid, site.stream, std::forward<A>(args)..., site.networks.stride);
}

}  // namespace crossover::cuda
