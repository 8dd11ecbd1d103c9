// SPDX-License-Identifier: Apache-2.0
// Where processes on this machine see each other's bytes.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace cuda_host {

class SharedMeeting {
 public:
  /// Of one process at once.
  static constexpr std::size_t most_bytes = std::size_t{1} << 16U;
  static constexpr int most_ranks = 4;

  /// That no other meeting has.
  static std::string new_name();

  /// Returns when all are there. Whoever waits for a minute, here or later, ends its process.
  SharedMeeting(const std::string& name, int rank, int size);
  SharedMeeting(const SharedMeeting&) = delete;
  SharedMeeting& operator=(const SharedMeeting&) = delete;
  ~SharedMeeting();

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }

  /// work(first bytes of each rank) on all of them at once; at most most_bytes.
  void with_all(std::span<const std::byte> own,
                const std::function<void(const std::vector<const std::byte*>&)>& work);

 private:
  struct Shared;
  void wait_for_all();

  Shared* shared_ = nullptr;
  int rank_, size_;
};

}  // namespace cuda_host
