// SPDX-License-Identifier: Apache-2.0
// Runs by one kernel, however many: Execution::persistent.
#pragma once

#include "../kernels/persistent.cuh"
#include "executor.h"

namespace crossover::cuda {

class Persistent : public Executor {
 public:
  /// Puts the order into the device's memory. Throws as calls of CUDA do.
  explicit Persistent(const Running& running);
  void enqueue(std::int64_t first, std::int64_t count) override;
  [[nodiscard]] bool issues_order_at_once() const override { return true; }
  void issue(std::int64_t run, const Position& position) const override;

 private:
  void train(std::int64_t first, std::int64_t count) const;

  const Running& running_;
  PersistentArguments arguments_;
};

}  // namespace crossover::cuda
