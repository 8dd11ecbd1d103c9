// SPDX-License-Identifier: Apache-2.0
// Passes over arrays in neighbours that a thread loads and stores at once, 16 bytes where the
// types allow it. They are widened to float as they come.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include "convert.cuh"
#include "grid.cuh"

namespace crossover::cuda {

constexpr int vector_bytes = 16;  ///< of the widest load and store

/// How many neighbours a pass takes whose narrowest type is T.
template <class T>
constexpr int neighbours = vector_bytes / static_cast<int>(sizeof(T));

/// As a load of 16 bytes takes them, or as two where they have more.
template <class T, int n>
struct alignas(sizeof(T) * n < vector_bytes ? sizeof(T) * n : vector_bytes) Neighbours {
  T at[n];
};

/// `from` is a multiple of the Neighbours' alignment.
template <int n, class T>
__device__ Neighbours<float, n> load(const T* from) {
  const auto stored = *reinterpret_cast<const Neighbours<T, n>*>(from);
  Neighbours<float, n> values;
  for (int k = 0; k < n; ++k) {
    values.at[k] = widen(stored.at[k]);
  }
  return values;
}

template <int n, class T>
__device__ void store(const Neighbours<float, n>& values, T* to) {
  Neighbours<T, n> stored;
  for (int k = 0; k < n; ++k) {
    stored.at[k] = narrow<T>(values.at[k]);
  }
  if constexpr (sizeof(stored) % sizeof(uint4) == 0) {
    // By name: of an assignment the compiler may make a store for each number.
    constexpr int vectors = sizeof(stored) / sizeof(uint4);
    uint4 words[vectors];  // NOLINT(*-avoid-c-arrays): device code has no std::array
    memcpy(words, &stored, sizeof(stored));
    for (int k = 0; k < vectors; ++k) {
      __stwb(reinterpret_cast<uint4*>(to) + k, words[k]);
    }
  } else {
    *reinterpret_cast<Neighbours<T, n>*>(to) = stored;
  }
}

/// The share of elements 0, 1, ... count - 1 of one of `threads` threads: body(m, i) for m of them
/// from i on, where m is a constant of a type, n, and 1 for those that are left at the end.
template <int n, class Body>
__device__ void for_neighbours(std::int64_t count, std::int64_t thread, std::int64_t threads,
                               const Body& body) {
  const std::int64_t vectors = count / n;
  for (std::int64_t v = thread; v < vectors; v += threads) {
    body(std::integral_constant<int, n>{}, v * n);
  }
  if constexpr (n > 1) {
    for (std::int64_t i = vectors * n + thread; i < count; i += threads) {
      body(std::integral_constant<int, 1>{}, i);
    }
  }
}

/// By all threads of the launch.
template <int n, class Body>
__device__ void for_neighbours(std::int64_t count, const Body& body) {
  for_neighbours<n>(count, thread_index(), thread_count(), body);
}

/// Whether all of them are places for a load of 16 bytes.
inline bool are_aligned(std::initializer_list<const void*> addresses) {
  std::uintptr_t all = 0;
  for (const void* address : addresses) {
    all |= reinterpret_cast<std::uintptr_t>(address);
  }
  return all % vector_bytes == 0;
}

/// work(m) for m neighbours at once: n of them, or 1 where they are not aligned.
template <int n, class Work>
void with_neighbours(bool aligned, const Work& work) {
  if (aligned) {
    work(std::integral_constant<int, n>{});
  } else {
    work(std::integral_constant<int, 1>{});
  }
}

}  // namespace crossover::cuda
