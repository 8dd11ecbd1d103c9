// SPDX-License-Identifier: Apache-2.0
// A fused program: what its threads do, step by step.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "../program.h"
#include "barrier.h"
#include "steps.h"

namespace crossover::cpu::fused {

class FusedProgram : public Program {
 public:
  FusedProgram(const Workload& workload, const std::vector<DenseStep>& training,
               const CompileOptions& options, std::int64_t bytes);

  void upload(Id id, std::span<const std::byte> from) override { memory_.upload(id, from); }
  void download(Id id, std::span<std::byte> to) override { memory_.download(id, to); }
  void upload_row(Id id, std::int64_t row, std::span<const std::byte> from) override {
    memory_.upload_row(id, row, from);
  }
  void enqueue(std::int64_t first, std::int64_t count) override;
  void wait() override {}  // enqueue() returns when all is done
  Profile profile() override;

 private:
  /// What one of `threads` threads does of a run; `after` is called after each phase.
  template <class After>
  void run(std::int64_t index, int thread, int threads, const After& after);
  template <class After>
  void run_all(std::int64_t first, std::int64_t count, const After& after);
  void perform(const Phase& phase, const FusedStep& step, std::int64_t first_row, int part,
               int parts, int chunk);

  const std::vector<Run> order_;
  const int threads_;
  const Block block_;
  Memory memory_;
  std::vector<FusedStep> steps_;
  bool shares_ = false;  ///< any phase, so that more than one thread is of use
  const Kernels kernels_;
  Barrier barrier_;
  Update update_;  ///< of the step that runs
  struct alignas(64) LossPart {
    double sum = 0;
  };
  std::vector<LossPart> loss_parts_;  ///< by part
};

}  // namespace crossover::cpu::fused
