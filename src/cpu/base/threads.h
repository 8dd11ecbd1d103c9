// SPDX-License-Identifier: Apache-2.0
// Threads: how many, what each takes of a loop, and how they take denormal numbers.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "crossover/backend.h"

namespace crossover::cpu {

// ---- How many threads OpenMP takes.

/// Sees to it that OpenMP takes as many threads as it is asked for; throws Unsupported where it may
/// not.
inline void allow_threads(int count) {
  if (count > omp_get_thread_limit()) {
    throw Unsupported("OMP_THREAD_LIMIT=" + std::to_string(omp_get_thread_limit()) +
                      " does not allow " + std::to_string(count) + " threads");
  }
  omp_set_dynamic(0);  // with OMP_DYNAMIC=true OpenMP would take fewer threads as it sees fit
}

/// Sets OpenMP's thread count for the calling thread, and restores it.
class Threads {
 public:
  explicit Threads(int count) : before_(omp_get_max_threads()), now_(count) {
    omp_set_num_threads(count);
  }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;
  ~Threads() { omp_set_num_threads(before_); }

  void use(int count) {
    if (count != now_) {
      omp_set_num_threads(count);
      now_ = count;
    }
  }

 private:
  int before_, now_;
};

// ---- One loop on several threads.

/// Calls work(begin, end) on consecutive parts of [0, count), one for each thread, cut at multiples
/// of `line` elements; by default of 16, a cache line of floats.
template <class Work>
void split(int threads, std::int64_t count, const Work& work, std::int64_t line = 16) {
  if (threads == 1) {
    work(std::int64_t{0}, count);
    return;
  }
#pragma omp parallel num_threads(threads)
  {
    const std::int64_t lines = (count + line - 1) / line;
    const std::int64_t mine = omp_get_thread_num();
    const std::int64_t all = omp_get_num_threads();
    const std::int64_t begin = std::min(count, lines * mine / all * line);
    const std::int64_t end = std::min(count, lines * (mine + 1) / all * line);
    if (begin < end) {
      work(begin, end);
    }
  }
}

// ---- Denormals

/// Whether the processor has modes that treat denormal numbers as zero (x86: FTZ and DAZ).
bool can_flush_denormals();

/// Lets the calling thread and `threads` workers treat denormal numbers as zero, where it can be
/// had: they appear after thousands of epochs and cost a hundred cycles each.
void flush_denormals(int threads);

}  // namespace crossover::cpu
