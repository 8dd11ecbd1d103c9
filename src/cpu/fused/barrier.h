// SPDX-License-Identifier: Apache-2.0
// Where the threads of a fused program wait for each other.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#ifdef __SSE2__
#include <immintrin.h>
#endif

namespace crossover::cpu::fused {

/// A step has one every few microseconds, so whoever waits spins; and gives its core away only when
/// it has waited long, for a thread that has none. Each arrival is one addition to a line that all
/// share, which grows with the threads, from about 0.1 us for two on one chip.
class Barrier {
 public:
  /// Until `threads` threads are here.
  void wait(int threads) {
    const std::uint32_t phase = phase_.load(std::memory_order_relaxed);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads) {
      arrived_.store(0, std::memory_order_relaxed);
      phase_.store(phase + 1, std::memory_order_release);
      return;
    }
    constexpr int patience = 20000;
    for (int spins = 0; phase_.load(std::memory_order_acquire) == phase; ++spins) {
      if (spins < patience) {
        pause();
      } else {
        std::this_thread::yield();
      }
    }
  }

 private:
  static void pause() {
#ifdef __SSE2__
    _mm_pause();
#endif
  }

  alignas(64) std::atomic<int> arrived_{0};
  alignas(64) std::atomic<std::uint32_t> phase_{0};
};

}  // namespace crossover::cpu::fused
