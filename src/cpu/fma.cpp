// SPDX-License-Identifier: Apache-2.0
#include "probes.h"

#include <array>
#include <cstring>
#include <utility>

#include "../probe/expected.h"

namespace crossover::cpu {
namespace {

// The vectors of this build's instructions, and as many of them as its registers hold beside the
// factor and the summand: two units of four or five cycles' latency need ten.
#if defined(__AVX512F__)
constexpr int vector_bytes = 64;
constexpr int chains = 24;
#elif defined(__aarch64__)
constexpr int vector_bytes = 16;
constexpr int chains = 24;
#elif defined(__AVX2__)
constexpr int vector_bytes = 32;
constexpr int chains = 12;
#else
constexpr int vector_bytes = 16;
constexpr int chains = 12;
#endif
constexpr int lanes = vector_bytes / static_cast<int>(sizeof(float));
using Vector [[gnu::vector_size(vector_bytes)]] = float;

}  // namespace

const std::int64_t fma_block = static_cast<std::int64_t>(lanes) * chains;

bool has_fma() {
#if defined(__FMA__) || defined(__AVX512F__) || defined(__aarch64__)
  return true;
#else
  return false;
#endif
}

void fma(std::int64_t begin, std::int64_t end, std::int64_t length, float* results) {
  const Vector factor = Vector{} + probe::fma_factor;
  const Vector summand = Vector{} + probe::fma_summand;
  for (std::int64_t first = begin; first < end; first += fma_block) {
    std::array<Vector, chains> x{};
    for (int i = 0; i < lanes * chains; ++i) {
      x[static_cast<std::size_t>(i / lanes)][i % lanes] = probe::fma_start(first + i);
    }
    for (std::int64_t step = 0; step < length; ++step) {
      // Contracted by the compiler; if not, the check finds other roundings.
      [&]<std::size_t... chain>(std::index_sequence<chain...>) {
        ((x[chain] = x[chain] * factor + summand), ...);
      }
      (std::make_index_sequence<chains>{});
    }
    std::memcpy(results + first, x.data(), sizeof x);
  }
}

}  // namespace crossover::cpu
