// SPDX-License-Identifier: Apache-2.0
// How many threads OpenMP takes.
#pragma once

#include <omp.h>

#include <string>

#include "crossover/backend.h"

namespace crossover::cpu {

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

}  // namespace crossover::cpu
