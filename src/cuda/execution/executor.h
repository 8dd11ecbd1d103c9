// SPDX-License-Identifier: Apache-2.0
// How a Program's runs are put into the stream. One class for each Execution; RunMode says which.
#pragma once

#include <cstdint>
#include <memory>

#include "feeder.h"
#include "running.h"

namespace crossover::cuda {

class Executor {
 public:
  Executor() = default;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  virtual ~Executor() = default;

  /// Runs [first, first + count) of the order; count > 0.
  virtual void enqueue(std::int64_t first, std::int64_t count) = 0;

  /// Whether a pass over the whole order is issued at once, not step by step.
  [[nodiscard]] virtual bool issues_order_at_once() const { return false; }

  /// Issues one run's step alone, which reads at the position. Of an order that is not issued at
  /// once, for its profile.
  virtual void issue(std::int64_t run, const Position& position) const = 0;
};

/// Throws what capturing graphs throws, and LoopsRefused. The block holds zeros before and after,
/// but for the order of runs that a kernel reads.
std::unique_ptr<Executor> make_executor(const Running& running);

/// Runs by one kernel, however many. Puts the order into the device's memory. Throws as calls of
/// CUDA do.
std::unique_ptr<Executor> make_persistent(const Running& running);

/// A step at a time, each after its batch.
class StepByStep : public Executor {
 public:
  explicit StepByStep(const Running& running) : running_(running), feeder_(make_feeder(running)) {}
  void enqueue(std::int64_t first, std::int64_t count) override;

 protected:
  [[nodiscard]] const Running& running() const { return running_; }

 private:
  const Running& running_;
  std::unique_ptr<Feeder> feeder_;
};

}  // namespace crossover::cuda
