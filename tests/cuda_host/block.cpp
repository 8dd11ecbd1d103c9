// SPDX-License-Identifier: Apache-2.0
// A thread gets a stack of its own only when it waits: until then one stack runs thread after
// thread, which makes kernels without barriers as cheap as loops.
#include "block.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <source_location>
#include <vector>

#include "fibers.h"
#include "include/cuda_host/kernel.h"
#include "races.h"
#include "shared_memory.h"
#include "state.h"

uint3 threadIdx{}, blockIdx{};
dim3 blockDim, gridDim;

namespace cuda_host {
namespace {

constexpr unsigned warp = warpSize;
constexpr unsigned all_lanes = 0xffffffffU;

enum class At { start, running, barrier, cluster_barrier, exchange, end };

struct Thread {
  At at = At::start;
  Fiber* fiber = nullptr;
  std::source_location where;
  std::uint64_t value = 0, received = 0;
  unsigned source = 0;                          ///< lane
  unsigned barriers = 0, cluster_barriers = 0;  ///< that it has come to
};

/// What a barrier orders, by the block; last of a cluster's, the barriers of the cluster. They stay
/// where they are: what earlier launches left in them is over.
races::Barrier& ordered_by_barriers(unsigned block) {
  static std::array<races::Barrier, 9> all;
  return all.at(block);
}
constexpr unsigned of_the_cluster = 8;

/// How many of a warp's lanes have come to its shuffle, and how many have ended.
struct Warp {
  unsigned at_exchange = 0, ended = 0;
};

std::string place(const std::source_location& where) {
  const std::string file = where.file_name();
  return file.substr(file.rfind('/') + 1) + ":" + std::to_string(where.line());
}

bool same(const std::source_location& a, const std::source_location& b) {
  return a.line() == b.line() && a.column() == b.column() &&
         (a.file_name() == b.file_name() || std::string_view(a.file_name()) == b.file_name());
}

Fibers& fibers() {
  static Fibers only;
  return only;
}

class Running {
 public:
  Running(const std::function<void()>& body, const Group& group)
      : body_(body),
        group_(group),
        threads_(std::size_t{group.blocks} * group.threads),
        warps_of_block_((group.threads + warp - 1) / warp),
        warps_(std::size_t{group.blocks} * warps_of_block_),
        fresh_of_block_(group.blocks, group.threads),
        left_of_block_(group.blocks, group.threads) {
    const auto count = static_cast<unsigned>(threads_.size());
    fresh_.resize(count);
    std::iota(fresh_.begin(), fresh_.end(), 0U);
    std::shuffle(fresh_.begin(), fresh_.end(), state().random);
  }

  std::string run() {
    races::begin_group();
    run_threads();
    if (!error_.empty()) {
      fibers().abandon();
    }
    fibers().reuse_ended();
    if (races::end_group() && error_.empty()) {
      error_ = "threads race, as the report on standard error says";
    }
    return error_;
  }

  // ---- called on fibers ----

  void barrier(const std::source_location& where) {
    const bool in_cluster = group_.kind == Group::Kind::cluster;
    meet(ordered_by_barriers(in_cluster ? block_of(current_) : 0), &Thread::barriers, At::barrier,
         where,
         group_.kind != Group::Kind::grid
             ? ""
             : "the barrier of a block is in a cooperative launch, where the emulation has only "
               "those of all blocks,");
  }

  void cluster_barrier(const std::source_location& where) {
    meet(ordered_by_barriers(of_the_cluster), &Thread::cluster_barriers, At::cluster_barrier, where,
         group_.kind == Group::Kind::cluster
             ? ""
             : "the barrier of a cluster is in no launch of clusters");
  }

  void grid_barrier(const std::source_location& where) {
    meet(ordered_by_barriers(0), &Thread::barriers, At::barrier, where,
         group_.kind == Group::Kind::grid
             ? ""
             : "the barrier of all blocks is in no cooperative launch");
  }

  void* shared_of(void* own, unsigned rank, const std::source_location& where) {
    if (group_.kind != Group::Kind::cluster || rank >= group_.blocks) {
      error_ = "block " + std::to_string(rank) + " at " + place(where) + " is in no cluster here";
      return own;
    }
    void* there = dynamic_shared_of(own, block_of(current_), rank);
    if (there == nullptr) {
      error_ =
          "the address at " + place(where) + " is not in the block's shared memory of the launch";
      return own;
    }
    return there;
  }

  [[nodiscard]] unsigned cluster_rank() const {
    return group_.kind == Group::Kind::cluster ? block_of(current_) : 0;
  }

  std::uint64_t exchange(unsigned mask, std::uint64_t value, unsigned source,
                         const std::source_location& where) {
    const races::Aside aside;
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
  /// Waits for the others, if nothing is wrong, and takes note of what that orders.
  void meet(races::Barrier& ordered, unsigned Thread::*barriers, At at,
            const std::source_location& where, const char* wrong) {
    const unsigned turn = threads_[current_].*barriers;
    ordered.arrive(turn);
    {
      const races::Aside aside;
      ++(threads_[current_].*barriers);
      if (*wrong != '\0') {
        error_ = wrong + (" at " + place(where));
      }
      wait(at, where);
    }
    ordered.leave(turn);
  }

  void run_threads() {
    while (error_.empty() && ended_ < threads_.size()) {
      const std::size_t choices = ready_.size() + (fresh_.empty() ? 0 : 1);
      const std::size_t chosen = choices == 0 ? 0 : state().pick(choices);
      if (choices == 0) {
        release_barriers();
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
  }

  [[nodiscard]] unsigned block_of(unsigned number) const { return number / group_.threads; }
  Warp& warp_of(unsigned number) {
    return warps_[block_of(number) * warps_of_block_ + number % group_.threads / warp];
  }

  void enter(unsigned number) {
    current_ = number;
    threadIdx.x = number % group_.threads;
    blockIdx = {group_.first + block_of(number), group_.row, 0};
    threads_[number].at = At::running;
  }

  void run_fresh() {
    while (!fresh_.empty() && error_.empty()) {
      const unsigned number = fresh_.back();
      fresh_.pop_back();
      threads_[number].fiber = nullptr;
      enter(number);
      begin(block_of(number));
      races::begin_thread(number);
      body_();
      races::end_thread();
      threads_[current_].at = At::end;
      ++ended_;
      ++warp_of(current_).ended;
      release_warp(current_);
      end(block_of(current_));
      if (races::are_looked_for) {
        return;  // the stack of one thread is no place for another's variables
      }
    }
  }

  void begin(unsigned block) {
    if (fresh_of_block_[block]-- == group_.threads && group_.kind == Group::Kind::cluster) {
      spoil_block(block);
    }
  }
  void end(unsigned block) {
    if (--left_of_block_[block] == 0 && group_.kind == Group::Kind::cluster) {
      spoil_block(block);
    }
  }

  void wait(At at, const std::source_location& where) {
    const unsigned number = current_;
    Thread& self = threads_[number];
    self.at = at;
    self.where = where;
    self.fiber = fibers().current();
    if (at == At::exchange) {
      ++warp_of(number).at_exchange;
      release_warp(number);
    }
    fibers().pause();
  }

  /// Lets the shuffle of a warp happen when all its lanes that have not ended have come to it.
  void release_warp(unsigned member) {
    const unsigned start = block_of(member) * group_.threads;
    const unsigned first = start + (member - start) / warp * warp;
    const unsigned last = std::min(first + warp, start + group_.threads);
    Warp& lanes = warp_of(member);
    if (lanes.at_exchange == 0 || lanes.at_exchange + lanes.ended < last - first) {
      return;
    }
    const Thread* waiting = nullptr;
    for (unsigned i = first; i < last; ++i) {
      const Thread& thread = threads_[i];
      if (thread.at == At::exchange) {
        if (waiting != nullptr && !same(waiting->where, thread.where)) {
          error_ = "lanes of one warp wait at different shuffles: " + place(waiting->where) +
                   " and " + place(thread.where);
          return;
        }
        waiting = &thread;
      }
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
    lanes.at_exchange = 0;
    for (unsigned i = first; i < last; ++i) {
      if (threads_[i].at == At::exchange) {
        threads_[i].at = At::running;
        ready_.push_back(i);
      }
    }
  }

  /// Nothing can run: all threads are at a barrier, or something is wrong. Of a cluster's blocks
  /// that are at a barrier of their own, one goes on, and may come to the next before another has
  /// left this one.
  void release_barriers() {
    if (group_.kind == Group::Kind::cluster) {
      std::vector<unsigned> at_their_own;
      for (unsigned block = 0; block < group_.blocks; ++block) {
        const auto first = threads_.begin() + block * group_.threads;
        if (std::any_of(first, first + group_.threads,
                        [](const Thread& thread) { return thread.at == At::barrier; })) {
          at_their_own.push_back(block);
        }
      }
      if (!at_their_own.empty()) {
        const unsigned block = at_their_own[state().pick(at_their_own.size())];
        release_barrier(block * group_.threads, (block + 1) * group_.threads, "block");
        return;
      }
    }
    release_barrier(0, static_cast<unsigned>(threads_.size()),
                    group_.kind == Group::Kind::cluster ? "cluster"
                    : group_.kind == Group::Kind::grid  ? "grid"
                                                        : "block");
  }

  void release_barrier(unsigned first, unsigned last, const std::string& of) {
    const Thread* at_barrier = nullptr;
    const Thread* at_exchange = nullptr;
    int ended = 0;
    for (unsigned i = first; i < last; ++i) {
      const Thread& thread = threads_[i];
      if (thread.at == At::exchange) {
        at_exchange = &thread;
      } else if (thread.at == At::end) {
        ++ended;
      } else {
        if (at_barrier != nullptr && !same(at_barrier->where, thread.where)) {
          error_ = "threads of one " + of +
                   " wait at different barriers: " + place(at_barrier->where) + " and " +
                   place(thread.where);
          return;
        }
        at_barrier = &thread;
      }
    }
    if (at_exchange != nullptr) {
      error_ = "some lanes of a warp wait at the shuffle at " + place(at_exchange->where) +
               ", others at the barrier at " + place(at_barrier->where);
    } else if (ended > 0) {
      error_ = "the barrier at " + place(at_barrier->where) +
               " is not reached by all threads of the " + of + ": " + std::to_string(ended) +
               " have ended";
    } else {
      for (unsigned i = first; i < last; ++i) {
        ready_.push_back(i);
      }
    }
  }

  const std::function<void()>& body_;
  const Group group_;
  std::vector<Thread> threads_;
  const unsigned warps_of_block_;
  std::vector<Warp> warps_;
  std::vector<unsigned> fresh_of_block_, left_of_block_;  ///< threads not started, not ended
  std::vector<unsigned> fresh_;                           ///< not started; the next one is the last
  std::vector<unsigned> ready_;                           ///< paused, with nothing to wait for
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

void cluster_barrier(const std::source_location& where) { running()->cluster_barrier(where); }

void* shared_of(void* own, unsigned rank, const std::source_location& where) {
  return running()->shared_of(own, rank, where);
}

unsigned cluster_rank() { return running() == nullptr ? 0 : running()->cluster_rank(); }

std::string run_group(const std::function<void()>& thread, const Group& group) {
  Running now(thread, group);
  running() = &now;
  std::string error = now.run();
  running() = nullptr;
  return error;
}

}  // namespace cuda_host
