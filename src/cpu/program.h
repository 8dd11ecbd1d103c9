// SPDX-License-Identifier: Apache-2.0
// A compiled Workload on the CPU: its tensors, its bound steps, and what runs them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "bound_steps.h"
#include "crossover/backend.h"
#include "eager.h"
#include "tensors.h"

namespace crossover::cpu {

class CpuProgram : public Program {
 public:
  /// `steps` are bound to `tensors`.
  CpuProgram(Tensors tensors, std::unique_ptr<const BoundSteps> steps, std::vector<Run> order,
             const ProgramFacts& facts, int threads)
      : Program(facts),
        tensors_(std::move(tensors)),
        steps_(std::move(steps)),
        execution_(*steps_, std::move(order), threads) {}

  void upload(Id id, std::span<const std::byte> from) override { tensors_.upload(id, from); }
  void download(Id id, std::span<std::byte> to) override { tensors_.download(id, to); }

  void upload_row(Id id, std::int64_t row, std::span<const std::byte> from) override {
    tensors_.upload_row(id, row, from);
  }

  void enqueue(std::int64_t first, std::int64_t count) override { execution_.run(first, count); }
  void wait() override {}  // enqueue() returns when all is done

  Profile profile() override { return execution_.profile(); }

 private:
  Tensors tensors_;
  const std::unique_ptr<const BoundSteps> steps_;
  const EagerExecution execution_;
};

}  // namespace crossover::cpu
