// SPDX-License-Identifier: Apache-2.0
#include "shared_meeting.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace cuda_host {

/// As the system gives it: zeros.
struct SharedMeeting::Shared {
  std::atomic<int> arrived;
  std::atomic<unsigned> times;  ///< that all have
  std::array<std::array<std::byte, most_bytes>, most_ranks> bytes;
};

std::string SharedMeeting::new_name() {
  static int made = 0;
  return "/crossover-" + std::to_string(getpid()) + "-" + std::to_string(++made);
}

SharedMeeting::SharedMeeting(const std::string& name, int rank, int size)
    : rank_(rank), size_(size) {
  const int file = shm_open(name.c_str(), O_CREAT | O_RDWR, S_IRUSR | S_IWUSR);
  if (file < 0 || ftruncate(file, sizeof(Shared)) != 0 || size > most_ranks) {
    std::perror(name.c_str());
    std::abort();
  }
  void* at = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  if (at == MAP_FAILED) {
    std::perror(name.c_str());
    std::abort();
  }
  shared_ = static_cast<Shared*>(at);
  wait_for_all();
  if (rank == 0) {
    shm_unlink(name.c_str());
  }
}

SharedMeeting::~SharedMeeting() { munmap(shared_, sizeof(Shared)); }

void SharedMeeting::wait_for_all() {
  const unsigned before = shared_->times;
  if (++shared_->arrived == size_) {
    shared_->arrived = 0;
    ++shared_->times;
    return;
  }
  const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (shared_->times == before) {
    std::this_thread::sleep_for(std::chrono::microseconds(20));
    if (std::chrono::steady_clock::now() > limit) {
      static_cast<void>(std::fprintf(stderr, "rank %d waits in vain for the others\n", rank_));
      std::abort();
    }
  }
}

void SharedMeeting::with_all(
    std::span<const std::byte> own,
    const std::function<void(const std::vector<const std::byte*>&)>& work) {
  std::copy(own.begin(), own.end(), shared_->bytes.at(static_cast<std::size_t>(rank_)).begin());
  wait_for_all();
  std::vector<const std::byte*> all;
  all.reserve(static_cast<std::size_t>(size_));
  for (int rank = 0; rank < size_; ++rank) {
    all.push_back(shared_->bytes.at(static_cast<std::size_t>(rank)).data());
  }
  work(all);
  wait_for_all();
}

}  // namespace cuda_host
