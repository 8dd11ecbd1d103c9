// SPDX-License-Identifier: Apache-2.0
// Ranks that are threads of one process: what mpirun would start, without MPI.
#pragma once

#include <algorithm>
#include <barrier>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "crossover/ranks.h"

namespace crossover::test {

/// What the threads share.
class ThreadMeeting {
 public:
  explicit ThreadMeeting(int size) : barrier_(size), values_(static_cast<std::size_t>(size)) {}

  [[nodiscard]] int size() const { return static_cast<int>(values_.size()); }

  /// Each rank's pointer is seen by all while `work` runs, which writes nothing that others read.
  template <class Work>
  void with_all(int rank, const void* own, const Work& work) {
    values_[static_cast<std::size_t>(rank)] = own;
    barrier_.arrive_and_wait();
    work(values_);
    barrier_.arrive_and_wait();
  }

 private:
  std::barrier<> barrier_;
  std::vector<const void*> values_;
};

class ThreadRanks : public Ranks {
 public:
  /// `astray`: added to the first sum of each call on this rank, as a wrong MPI would.
  ThreadRanks(ThreadMeeting& meeting, int rank, float astray = 0)
      : meeting_(meeting), rank_(rank), astray_(astray) {}

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return meeting_.size(); }

  void sum(std::span<float> values) override {
    sum_of(values);
    if (values.size() > 1) {  // one is a meeting
      values[0] += astray_;
    }
  }

  /// In double, as a reference asks for it.
  template <class Number>
  void sum_of(std::span<Number> values) {
    std::vector<Number> sums(values.size(), 0);
    meeting_.with_all(rank_, values.data(), [&](const std::vector<const void*>& all) {
      for (const void* one : all) {
        const auto* from = static_cast<const Number*>(one);
        std::transform(sums.begin(), sums.end(), from, sums.begin(), std::plus<>());
      }
    });
    std::copy(sums.begin(), sums.end(), values.begin());
  }

  void start_sum(std::span<float> values) override { begun_.push_back(values); }
  void progress() override {}
  void finish_sums() override {
    for (const std::span<float> values : begun_) {
      sum(values);
    }
    begun_.clear();
  }

  void broadcast(std::span<std::byte> bytes) override {
    meeting_.with_all(rank_, bytes.data(), [&](const std::vector<const void*>& all) {
      if (rank_ > 0) {
        std::memcpy(bytes.data(), all[0], bytes.size());
      }
    });
  }

  void gather(std::span<const std::byte> own, std::span<std::byte> all) override {
    meeting_.with_all(rank_, own.data(), [&](const std::vector<const void*>& pieces) {
      for (std::size_t i = 0; rank_ == 0 && i < pieces.size(); ++i) {
        std::memcpy(all.data() + i * own.size(), pieces[i], own.size());
      }
    });
  }

  [[noreturn]] void abort() override { std::terminate(); }

 private:
  ThreadMeeting& meeting_;
  const int rank_;
  const float astray_;
  std::vector<std::span<float>> begun_;
};

/// Calls work(rank) for each of the ranks, rank 0 in this thread, and returns when all are done.
inline void on_ranks(int size, const std::function<void(int rank)>& work) {
  std::vector<std::thread> others;
  for (int rank = 1; rank < size; ++rank) {
    others.emplace_back(work, rank);
  }
  work(0);
  for (std::thread& other : others) {
    other.join();
  }
}

}  // namespace crossover::test
