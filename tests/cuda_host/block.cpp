// SPDX-License-Identifier: Apache-2.0
// A thread gets a stack of its own only when it waits: until then one stack runs thread after
// thread, which makes kernels without barriers as cheap as loops.
#include "block.h"

#include <algorithm>
#include <numeric>
#include <source_location>
#include <vector>

#include "fibers.h"
#include "include/cuda_host/kernel.h"
#include "state.h"

uint3 threadIdx{}, blockIdx{};
dim3 blockDim, gridDim;

namespace cuda_host {
namespace {

constexpr unsigned warp = warpSize;
constexpr unsigned all_lanes = 0xffffffffU;

enum class At { start, running, barrier, exchange, end };

struct Thread {
  At at = At::start;
  Fiber* fiber = nullptr;
  std::source_location where;
  std::uint64_t value = 0, received = 0;
  unsigned source = 0;  ///< lane
};

std::string place(const std::source_location& where) {
  const std::string file = where.file_name();
  return file.substr(file.rfind('/') + 1) + ":" + std::to_string(where.line());
}

bool same(const std::source_location& a, const std::source_location& b) {
  return a.line() == b.line() && a.column() == b.column() &&
         std::string_view(a.file_name()) == b.file_name();
}

Fibers& fibers() {
  static Fibers only;
  return only;
}

class Running {
 public:
  /// One block, or several of a cooperative launch.
  Running(const std::function<void()>& body, unsigned blocks, unsigned threads_of_block,
          bool cooperative)
      : body_(body),
        threads_(std::size_t{blocks} * threads_of_block),
        threads_of_block_(threads_of_block),
        cooperative_(cooperative) {
    const auto count = static_cast<unsigned>(threads_.size());
    fresh_.resize(count);
    std::iota(fresh_.begin(), fresh_.end(), 0U);
    std::shuffle(fresh_.begin(), fresh_.end(), state().random);
  }

  std::string run() {
    while (error_.empty() && ended_ < threads_.size()) {
      const std::size_t choices = ready_.size() + (fresh_.empty() ? 0 : 1);
      const std::size_t chosen = choices == 0 ? 0 : state().pick(choices);
      if (choices == 0) {
        release_barrier();
      } else if (chosen == ready_.size()) {
        fibers().start([this] { run_fresh(); });
      } else {
        const unsigned number = ready_[chosen];
        ready_[chosen] = ready_.back();
        ready_.pop_back();
        enter(number);
        fibers().resume(threads_[number].fiber);
      }
    }
    if (!error_.empty()) {
      fibers().abandon();
    }
    return error_;
  }

  // ---- called on fibers ----

  void barrier(const std::source_location& where) {
    if (cooperative_) {
      error_ = "the barrier of a block at " + place(where) +
               " is in a cooperative launch, where the emulation has only those of all blocks";
    }
    wait(At::barrier, where);
  }

  void grid_barrier(const std::source_location& where) {
    if (!cooperative_) {
      error_ = "the barrier of all blocks at " + place(where) + " is in no cooperative launch";
    }
    wait(At::barrier, where);
  }

  std::uint64_t exchange(unsigned mask, std::uint64_t value, unsigned source,
                         const std::source_location& where) {
    const unsigned number = current_;
    if (mask != all_lanes) {
      error_ = "the shuffle at " + place(where) + " is not one of all lanes";
    }
    threads_[number].value = value;
    threads_[number].source = source;
    wait(At::exchange, where);
    return threads_[number].received;
  }

 private:
  void enter(unsigned number) {
    current_ = number;
    threadIdx.x = number % threads_of_block_;
    if (cooperative_) {
      blockIdx = {number / threads_of_block_, 0, 0};
    }
    threads_[number].at = At::running;
  }

  void run_fresh() {
    while (!fresh_.empty() && error_.empty()) {
      const unsigned number = fresh_.back();
      fresh_.pop_back();
      threads_[number].fiber = nullptr;
      enter(number);
      body_();
      threads_[current_].at = At::end;
      ++ended_;
      release_warp(current_);
    }
  }

  void wait(At at, const std::source_location& where) {
    const unsigned number = current_;
    Thread& self = threads_[number];
    self.at = at;
    self.where = where;
    self.fiber = fibers().current();
    release_warp(number);
    fibers().pause();
  }

  /// Lets the shuffle of a warp happen when all its lanes that have not ended have come to it.
  void release_warp(unsigned member) {
    const unsigned first = member / warp * warp;
    const unsigned last = std::min(first + warp, static_cast<unsigned>(threads_.size()));
    const Thread* waiting = nullptr;
    for (unsigned i = first; i < last; ++i) {
      const Thread& thread = threads_[i];
      if (thread.at == At::start || thread.at == At::running || thread.at == At::barrier) {
        return;
      }
      if (thread.at == At::exchange) {
        if (waiting != nullptr && !same(waiting->where, thread.where)) {
          error_ = "lanes of one warp wait at different shuffles: " + place(waiting->where) +
                   " and " + place(thread.where);
          return;
        }
        waiting = &thread;
      }
    }
    if (waiting == nullptr) {
      return;
    }
    for (unsigned i = first; i < last; ++i) {
      Thread& thread = threads_[i];
      if (thread.at != At::exchange) {
        continue;
      }
      const unsigned source = first + thread.source;
      if (source >= last || (threads_[source].at != At::exchange)) {
        error_ = "the shuffle at " + place(thread.where) + " reads lane " +
                 std::to_string(thread.source) + ", which has ended or does not exist";
        return;
      }
      thread.received = threads_[source].value;
    }
    for (unsigned i = first; i < last; ++i) {
      if (threads_[i].at == At::exchange) {
        threads_[i].at = At::running;
        ready_.push_back(i);
      }
    }
  }

  /// Nothing can run: all threads are at one barrier, or something is wrong.
  void release_barrier() {
    const Thread* at_barrier = nullptr;
    const Thread* at_exchange = nullptr;
    for (const Thread& thread : threads_) {
      if (thread.at == At::exchange) {
        at_exchange = &thread;
      } else if (thread.at == At::barrier) {
        if (at_barrier != nullptr && !same(at_barrier->where, thread.where)) {
          error_ = "threads of one block wait at different barriers: " + place(at_barrier->where) +
                   " and " + place(thread.where);
          return;
        }
        at_barrier = &thread;
      }
    }
    if (at_exchange != nullptr) {
      error_ = "some lanes of a warp wait at the shuffle at " + place(at_exchange->where) +
               ", others at the barrier at " + place(at_barrier->where);
    } else if (ended_ > 0) {
      error_ = "the barrier at " + place(at_barrier->where) +
               " is not reached by all threads of the block: " + std::to_string(ended_) +
               " have ended";
    } else {
      for (unsigned i = 0; i < threads_.size(); ++i) {
        ready_.push_back(i);
      }
    }
  }

  const std::function<void()>& body_;
  std::vector<Thread> threads_;
  unsigned threads_of_block_;
  bool cooperative_;
  std::vector<unsigned> fresh_;  ///< not started; the next one is the last
  std::vector<unsigned> ready_;  ///< paused, with nothing to wait for
  unsigned current_ = 0;
  std::size_t ended_ = 0;
  std::string error_;
};

Running*& running() {
  static Running* only = nullptr;
  return only;
}

}  // namespace

void barrier(const std::source_location& where) { running()->barrier(where); }

std::uint64_t exchange(unsigned mask, std::uint64_t value, unsigned source,
                       const std::source_location& where) {
  return running()->exchange(mask, value, source, where);
}

unsigned lane() { return threadIdx.x % warp; }

void grid_barrier(const std::source_location& where) { running()->grid_barrier(where); }

namespace {

std::string run_all(const std::function<void()>& thread, unsigned blocks, unsigned threads,
                    bool cooperative) {
  Running block(thread, blocks, threads, cooperative);
  running() = &block;
  std::string error = block.run();
  running() = nullptr;
  return error;
}

}  // namespace

std::string run_block(const std::function<void()>& thread, unsigned threads) {
  return run_all(thread, 1, threads, /*cooperative=*/false);
}

std::string run_blocks(const std::function<void()>& thread, unsigned blocks, unsigned threads) {
  return run_all(thread, blocks, threads, /*cooperative=*/true);
}

}  // namespace cuda_host
