// SPDX-License-Identifier: Apache-2.0
// Ranks that are processes, because the emulated GPU is a whole process's.
#pragma once

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <exception>
#include <functional>
#include <iostream>
#include <span>
#include <string>
#include <vector>

#include "cuda_host.h"
#include "queue.h"
#include "shared_meeting.h"

namespace crossover::test {

class ProcessRanks : public Ranks {
 public:
  ProcessRanks(const std::string& name, int rank, int size) : meeting_(name, rank, size) {}

  [[nodiscard]] int rank() const override { return meeting_.rank(); }
  [[nodiscard]] int size() const override { return meeting_.size(); }

  /// Of the host, where ranks only meet.
  void sum(std::span<float> /*values*/) override {
    with_all({}, [](const auto& /*all*/) {});
  }
  void start_sum(std::span<float> /*values*/) override { abort(); }
  void progress() override {}
  void finish_sums() override {}

  void broadcast(std::span<std::byte> bytes) override {
    for (std::size_t first = 0; first < bytes.size(); first += most) {
      const auto part = bytes.subspan(first, std::min(most, bytes.size() - first));
      with_all(part, [&](const std::vector<const std::byte*>& all) {
        std::memcpy(part.data(), all[0], part.size());
      });
    }
  }

  void gather(std::span<const std::byte> own, std::span<std::byte> all) override {
    for (std::size_t first = 0; first < own.size(); first += most) {
      const auto part = own.subspan(first, std::min(most, own.size() - first));
      with_all(part, [&](const std::vector<const std::byte*>& ranks) {
        for (std::size_t i = 0; rank() == 0 && i < ranks.size(); ++i) {
          std::memcpy(all.data() + i * own.size() + first, ranks[i], part.size());
        }
      });
    }
  }

  [[noreturn]] void abort() override { std::abort(); }

 private:
  static constexpr std::size_t most = cuda_host::SharedMeeting::most_bytes;

  /// A GPU goes on while its rank waits for others; the emulated one, before it does.
  template <class Work>
  void with_all(std::span<const std::byte> own, const Work& work) {
    cuda_host::run_everything();
    meeting_.with_all(own, work);
  }

  cuda_host::SharedMeeting meeting_;
};

/// Calls work(ranks) in as many processes, rank 0 in this one, and returns when all are done.
inline void on_processes(int size, const std::function<void(Ranks& ranks)>& work) {
  const std::string name = cuda_host::SharedMeeting::new_name();
  std::vector<pid_t> others;
  for (int rank = 1; rank < size; ++rank) {
    const pid_t child = fork();
    if (child > 0) {
      others.push_back(child);
      continue;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int failed = 1;
    try {
      ProcessRanks ranks(name, rank, size);
      work(ranks);
      for (const std::string& sentence : cuda_host::take_violations()) {
        ADD_FAILURE() << sentence;
      }
      failed = testing::Test::HasFailure() ? 1 : 0;
    } catch (const std::exception& error) {
      std::cerr << "rank " << rank << ": " << error.what() << std::endl;
    }
    _exit(failed);
  }
  {
    ProcessRanks ranks(name, 0, size);
    work(ranks);
  }
  for (const pid_t other : others) {
    int status = 0;
    waitpid(other, &status, 0);
    EXPECT_EQ(status, 0) << "another rank";
  }
}

}  // namespace crossover::test
