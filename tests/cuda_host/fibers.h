// SPDX-License-Identifier: Apache-2.0
// Stacks of their own for functions that must be able to pause.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace cuda_host {

struct Fiber;

/// Runs functions on fibers of the calling thread. Not to be used by two threads, nor by one of its
/// own fibers.
class Fibers {
 public:
  Fibers();
  Fibers(const Fibers&) = delete;
  Fibers& operator=(const Fibers&) = delete;
  ~Fibers();

  /// Starts `body` on a free stack, and returns when it has paused or ended.
  Fiber* start(std::function<void()> body);
  /// Goes on behind the pause.
  void resume(Fiber* fiber);
  /// The fiber that runs, or null.
  [[nodiscard]] Fiber* current() const { return current_; }
  /// To be called on a fiber: back to start() or resume().
  void pause();
  /// Where races are looked for, a stack that has been used is free from now on only.
  void reuse_ended();
  /// Gives back the stacks of those that have not ended, without unwinding them.
  void abandon();

 private:
  friend struct Fiber;
  Fiber* take();
  void enter(Fiber* fiber);

  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> free_, ended_;
  struct Caller;
  std::unique_ptr<Caller> caller_;
  Fiber* current_ = nullptr;
};

}  // namespace cuda_host
