// SPDX-License-Identifier: Apache-2.0
// What some Programs can do beside what all can (backend.h). Whoever needs it asks a Program for
// it, never while a clock runs: Program::extension<T>().
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "crossover/backend.h"

namespace crossover {

class Extension {
 public:
  Extension() = default;
  Extension(const Extension&) = delete;
  Extension& operator=(const Extension&) = delete;
  virtual ~Extension() = default;
};

/// Of a Program of several copies of its Workload (ProgramFacts::copies), or of one that trains
/// others in launches of its own.
class TrainsCopies : public Extension {
 public:
  /// Of one of its copies: the Program's upload() is to each of them, download() from the first,
  /// enqueue() for all.
  virtual void upload_to(std::int64_t copy, Id id, std::span<const std::byte> from) = 0;
  virtual void download_from(std::int64_t copy, Id id, std::span<std::byte> to) = 0;
  virtual void enqueue_for(std::int64_t copy, std::int64_t first, std::int64_t count) = 0;

  /// From now on enqueue_joined() trains `others`, too, which were compiled alike and outlive this
  /// one. False where there is no such launch, and nothing changes.
  virtual bool join(std::span<Program* const> others) = 0;

  /// enqueue() of each that has joined. They must have been waited for before this one follows
  /// their own enqueue(), or the other way round.
  virtual void enqueue_joined(std::int64_t first, std::int64_t count) = 0;
};

/// Of a Program that takes its data row by row.
class TakesRows : public Extension {
 public:
  /// Copies one row of a data tensor. Other threads may do so while steps run that do not read it.
  virtual void upload_row(Id id, std::int64_t row, std::span<const std::byte> from) = 0;
};

/// Of a Program that several ranks run.
class TakesPasses : public Extension {
 public:
  /// Says that so many passes over the whole order follow, each with a wait(), and nothing else:
  /// what others must be told is told now, not between them.
  virtual void expect_passes(std::int64_t count) = 0;

  /// Behind those passes the seconds that they took on each rank, but for rank 0, which has the
  /// clock.
  virtual std::vector<double> seconds_of_passes() = 0;
};

/// The same of any Program: nothing, and no seconds, where no other rank runs it.
inline void expect_passes(Program& program, std::int64_t count) {
  if (auto* shared = program.extension<TakesPasses>()) {
    shared->expect_passes(count);
  }
}
inline std::vector<double> seconds_of_passes(Program& program) {
  auto* shared = program.extension<TakesPasses>();
  return shared == nullptr ? std::vector<double>() : shared->seconds_of_passes();
}

}  // namespace crossover
