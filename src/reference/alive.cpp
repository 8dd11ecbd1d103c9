// SPDX-License-Identifier: Apache-2.0
#include "crossover/alive.h"

#include <chrono>
#include <cmath>
#include <utility>

namespace crossover {
namespace {

// Whoever works is handed no listener.
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
std::atomic<AliveListener*> listener{nullptr};

std::int64_t now() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

}  // namespace

void alive() {
  if (AliveListener* const one = listener.load(); one != nullptr) {
    one->hear();
  }
}

AliveListener::AliveListener(std::function<void()> told, double seconds)
    : told_(std::move(told)),
      pause_(static_cast<std::int64_t>(std::llround(seconds * 1e9))),
      next_(now() + pause_),
      before_(listener.exchange(this)) {}

/// Where the work is done: the threads that shared it call alive() no more.
AliveListener::~AliveListener() { listener.store(before_); }

void AliveListener::wait_anew() { next_ = now() + pause_; }

void AliveListener::hear() {
  const std::int64_t at = now();
  std::int64_t next = next_.load();
  if (at >= next && next_.compare_exchange_strong(next, at + pause_)) {
    told_();
  }
}

}  // namespace crossover
