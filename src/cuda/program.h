// SPDX-License-Identifier: Apache-2.0
// A Workload on the GPU: a LaunchPlan carried out.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "crossover/backend.h"
#include "device_tensors.h"
#include "execution/executor.h"
#include "execution/running.h"
#include "launches/bind.h"
#include "plan.h"
#include "products.h"
#include "profile.h"
#include "runtime.h"

namespace crossover::cuda {

class CudaProgram : public Program {
 public:
  /// On the thread's device. The products are those that the plan was made with. Throws
  /// OutOfMemory; NoneRuns where the library then fails to run one of them.
  CudaProgram(Workload workload, LaunchPlan plan, std::shared_ptr<Products> products,
              const CompileOptions& options);

  void upload(Id id, std::span<const std::byte> from) override;
  void download(Id id, std::span<std::byte> to) override;
  void enqueue(std::int64_t first, std::int64_t count) override;
  void wait() override { running_.wait(); }
  [[nodiscard]] std::int64_t launches() const override;
  [[nodiscard]] Arithmetic arithmetic() const override { return arithmetic_; }
  Profile profile() override;  // program_profile.cpp

 private:
  StepSeconds profile_step(int index, double between_events);

  const Workload workload_;
  const LaunchPlan plan_;
  const std::shared_ptr<Products> products_;
  DeviceTensors tensors_;
  const LossReader losses_;
  Arithmetic arithmetic_;
  std::vector<BoundStep> steps_;
  std::unique_ptr<Executor> executor_;
  // Destroyed before what comes above: it waits for what still uses it.
  const Stream compute_;
  const Running running_;
};

}  // namespace crossover::cuda
