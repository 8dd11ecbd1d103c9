// SPDX-License-Identifier: Apache-2.0
// Whether long work goes on: it says so itself, from within its loops, and who waits for it can
// tell work that takes long from work that hangs.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>

namespace crossover {

/// Work goes on. Reads a clock where somebody listens, and does nothing else; not for timed loops.
void alive();

/// body(i) for each i below `count`, one after the other; alive() every now and then.
template <class Body>
void for_each_index(std::int64_t count, const Body& body) {
  constexpr std::int64_t at_once = 1 << 18;  // a few milliseconds
  for (std::int64_t first = 0; first < count; first += at_once) {
    const std::int64_t end = std::min(count, first + at_once);
    for (std::int64_t i = first; i < end; ++i) {
      body(i);
    }
    alive();
  }
}

/// While it lives, `told` is called from alive(), in whichever thread, where the last call is at
/// least `seconds` ago. One that is made later hears in its place.
class AliveListener {
 public:
  explicit AliveListener(std::function<void()> told, double seconds = 0.5);
  AliveListener(const AliveListener&) = delete;
  AliveListener& operator=(const AliveListener&) = delete;
  ~AliveListener();

  /// As if it had just been told.
  void wait_anew();

 private:
  friend void alive();
  void hear();

  const std::function<void()> told_;
  const std::int64_t pause_;        ///< nanoseconds
  std::atomic<std::int64_t> next_;  ///< by the steady clock
  AliveListener* const before_;
};

}  // namespace crossover
