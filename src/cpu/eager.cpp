// SPDX-License-Identifier: Apache-2.0
#include "eager.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "threads.h"

namespace crossover::cpu {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

/// Pieces of a tiny network last little longer than the clock takes to read: the least of some
/// means, as another process may take the core meanwhile.
Seconds seconds_of_a_clock_reading() {
  constexpr int means = 20;
  constexpr int readings = 50;
  Seconds least = Seconds::max();
  for (int mean = 0; mean < means; ++mean) {
    const auto start = Clock::now();
    for (int i = 1; i < readings; ++i) {
      [[maybe_unused]] const volatile auto now = Clock::now().time_since_epoch().count();
    }
    least = std::min<Seconds>(least, (Clock::now() - start) / readings);
  }
  return least;
}

}  // namespace

EagerExecution::EagerExecution(const BoundSteps& steps, std::vector<Run> order, int threads)
    : steps_(steps), order_(std::move(order)), threads_(threads) {}

template <class Visit>
void EagerExecution::for_each_kernel(std::int64_t first, std::int64_t count,
                                     const Visit& visit) const {
  Threads threads(threads_);
  for (std::int64_t run = first; run < first + count; ++run) {
    const Run& what = order_[static_cast<std::size_t>(run)];
    const Position position{what.first_row, run};
    for (const Kernel& kernel : steps_[what.step]) {
      threads.use(kernel.threads);
      visit(kernel, position);
    }
  }
}

void EagerExecution::run(std::int64_t first, std::int64_t count) const {
  for_each_kernel(first, count,
                  [](const Kernel& kernel, const Position& position) { kernel.call(position); });
}

Profile EagerExecution::profile() const {
  const Seconds of_clock = seconds_of_a_clock_reading();
  Profile profile;
  for_each_kernel(0, std::ssize(order_), [&](const Kernel& kernel, const Position& position) {
    const auto start = Clock::now();
    kernel.call(position);
    const Seconds spent = Clock::now() - start - of_clock;
    profile[kernel.category] += std::max(0.0, spent.count());
  });
  return profile;
}

}  // namespace crossover::cpu
