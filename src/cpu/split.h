// SPDX-License-Identifier: Apache-2.0
// One loop on several threads.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>

namespace crossover::cpu {

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

}  // namespace crossover::cpu
