// SPDX-License-Identifier: Apache-2.0
// Ranks over MPI (MPI: A Message-Passing Interface Standard, Version 3.1).
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "crossover/ranks.h"

namespace crossover {
namespace {

/// MPI counts in ints.
constexpr std::size_t most_at_once = std::numeric_limits<int>::max();

/// Calls work(first, count) on parts that MPI can count.
template <class Work>
void in_parts(std::size_t count, const Work& work) {
  for (std::size_t first = 0; first < count; first += most_at_once) {
    work(first, static_cast<int>(std::min(most_at_once, count - first)));
  }
}

class MpiRanks : public Ranks {
 public:
  MpiRanks() {
    int provided = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    constexpr std::size_t enough = 1024;  // a timed loop allocates nothing
    begun_.reserve(enough);
  }
  MpiRanks(const MpiRanks&) = delete;
  MpiRanks& operator=(const MpiRanks&) = delete;
  ~MpiRanks() override { MPI_Finalize(); }

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }

  void sum(std::span<float> values) override {
    in_parts(values.size(), [&](std::size_t first, int count) {
      MPI_Allreduce(MPI_IN_PLACE, values.data() + first, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    });
  }

  void start_sum(std::span<float> values) override {
    in_parts(values.size(), [&](std::size_t first, int count) {
      begun_.emplace_back();
      MPI_Iallreduce(MPI_IN_PLACE, values.data() + first, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD,
                     &begun_.back());
    });
  }

  void progress() override {
    int all_done = 0;
    MPI_Testall(begun(), begun_.data(), &all_done, MPI_STATUSES_IGNORE);
  }

  void finish_sums() override {
    MPI_Waitall(begun(), begun_.data(), MPI_STATUSES_IGNORE);
    begun_.clear();
  }

  void broadcast(std::span<std::byte> bytes) override {
    in_parts(bytes.size(), [&](std::size_t first, int count) {
      MPI_Request request = MPI_REQUEST_NULL;
      MPI_Ibcast(bytes.data() + first, count, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
      wait(request);
    });
  }

  void gather(std::span<const std::byte> own, std::span<std::byte> all) override {
    const int count = static_cast<int>(own.size());
    MPI_Gather(own.data(), count, MPI_BYTE, all.data(), count, MPI_BYTE, 0, MPI_COMM_WORLD);
  }

  [[noreturn]] void abort() override {
    MPI_Abort(MPI_COMM_WORLD, 1);
    _exit(1);
  }

 private:
  [[nodiscard]] int begun() const { return static_cast<int>(begun_.size()); }

  /// MPI's own wait keeps a core busy, which another row or the reference may need: sleeps, ever
  /// longer, once it has lasted.
  static void wait(MPI_Request& request) {
    using std::chrono::microseconds;
    constexpr int at_once = 1000;
    constexpr microseconds longest(2000);
    microseconds nap(20);
    int is_done = 0;
    for (int tries = 0; is_done == 0; ++tries) {
      MPI_Test(&request, &is_done, MPI_STATUS_IGNORE);
      if (is_done == 0 && tries > at_once) {
        std::this_thread::sleep_for(nap);
        nap = std::min(longest, 2 * nap);
      }
    }
  }

  int rank_ = 0, size_ = 1;
  std::vector<MPI_Request> begun_;
};

}  // namespace

std::string ranks_library() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  const std::string all(text.data(), static_cast<std::size_t>(length));
  return all.substr(0, all.find_first_of(",\n"));
}

std::unique_ptr<Ranks> join_ranks() {
  const bool by_mpirun = std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr;
  if (ranks_library().starts_with("Open MPI") && !by_mpirun &&
      std::getenv("PMIX_RANK") == nullptr) {
    throw std::runtime_error(
        "srun started bench as " + std::to_string(launched_ranks()) +
        " ranks that cannot find each other, because Open MPI asks Slurm by PMIx: say srun "
        "--mpi=pmix (srun --mpi=list shows whether it is there), or mpirun instead of srun");
  }
  auto ranks = std::make_unique<MpiRanks>();
  if (const int launched = launched_ranks(); ranks->size() != launched) {
    throw std::runtime_error(
        "the launcher started " + std::to_string(launched) + " ranks, but MPI finds " +
        std::to_string(ranks->size()) +
        ": launcher and MPI do not fit together; under Slurm say srun --mpi=pmix, otherwise take "
        "the mpirun of the MPI that bench was built with (" +
        ranks_library() + ")");
  }
  return ranks;
}

}  // namespace crossover
