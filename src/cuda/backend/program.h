// SPDX-License-Identifier: Apache-2.0
// A Workload on the GPU: a LaunchPlan carried out.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "../execution/executor.h"
#include "../kernels/bind.h"
#include "../libraries/algorithms.h"
#include "../planning/plan.h"
#include "crossover/backend.h"
#include "device_tensors.h"
#include "profile.h"
#include "runtime.h"

namespace crossover::cuda {

class CudaProgram : public Program {
 public:
  /// On the thread's device. Its algorithms are those that the plan was made with;
  /// collectives, where it sums over ranks, are those of all its ranks.
  /// Throws OutOfMemory; NoneRuns where a library then fails to run one of them; LoopsRefused where
  /// the driver then has none; Unsupported where one of them can't be captured.
  CudaProgram(Workload workload, LaunchPlan plan, SharedAlgorithms algorithms,
              std::shared_ptr<Collectives> collectives, const CompileOptions& options);

  void upload(Id id, std::span<const std::byte> from) override;
  void download(Id id, std::span<std::byte> to) override;
  void enqueue(std::int64_t first, std::int64_t count) override;
  void wait() override { running_.wait(); }
  Profile profile() override;

 private:
  [[nodiscard]] ProgramFacts count_facts() const;
  StepSeconds profile_step(int index, double between_events);
  StepSeconds profile_order(double between_events);

  const Workload workload_;
  const LaunchPlan plan_;
  const SharedAlgorithms algorithms_;
  const std::shared_ptr<Collectives> collectives_;
  DeviceTensors tensors_;
  const LossReader losses_;
  const SecondStream second_;
  std::int64_t next_run_ = 0;  ///< see Running
  std::vector<BoundStep> steps_;
  std::unique_ptr<Executor> executor_;
  // Destroyed before what comes above: it waits for what still uses it.
  const Stream compute_;
  const Running running_;
};

}  // namespace crossover::cuda
