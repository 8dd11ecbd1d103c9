// SPDX-License-Identifier: Apache-2.0
// Processes that train one network together: each rank has its share of every batch, and all have
// the same parameters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace crossover {

/// Ranks, and how they reach each other. Each call is one of all ranks: they make the same calls in
/// the same order. Where a rank ends, the launcher ends the others.
class Ranks {
 public:
  Ranks() = default;
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;
  virtual ~Ranks() = default;

  [[nodiscard]] virtual int rank() const = 0;  ///< from 0
  [[nodiscard]] virtual int size() const = 0;

  /// Each value becomes its sum over all ranks, with the same bits on each.
  virtual void sum(std::span<float> values) = 0;

  /// Begins to do so. Until finish_sums() the values belong to it.
  virtual void start_sum(std::span<float> values) = 0;
  /// Between other work, so that what was begun goes on where no thread of its own sees to it.
  virtual void progress() = 0;
  virtual void finish_sums() = 0;

  /// The bytes of rank 0 on all ranks. May last: a rank that waits sleeps.
  virtual void broadcast(std::span<std::byte> bytes) = 0;

  /// Those of all ranks on rank 0, rank by rank; `all` is empty on the others.
  virtual void gather(std::span<const std::byte> own, std::span<std::byte> all) = 0;

  /// Ends all ranks at once, without a word.
  [[noreturn]] virtual void abort() = 0;
};

/// Of how many ranks a launcher (mpirun, srun) says that this process is one; 1 of a process that
/// was started alone.
int launched_ranks();

/// Which of them this process is.
int launched_rank();

/// How ranks reach each other in this build: "Open MPI v4.1.4"; empty where it has no MPI.
std::string ranks_library();

/// Why this build has no ranks, and what to do about it.
inline constexpr const char* no_mpi =
    "this bench was built without MPI; install libopenmpi-dev and openmpi-bin (or another MPI), "
    "then build again";

/// The ranks that this process was launched with; call once, before threads are started. Throws
/// std::runtime_error where the build has no MPI, and where the launcher's ranks do not find each
/// other.
std::unique_ptr<Ranks> join_ranks();

}  // namespace crossover
