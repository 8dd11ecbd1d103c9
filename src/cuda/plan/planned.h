// SPDX-License-Identifier: Apache-2.0
// What the CUDA backend knows of a Workload without a device: its arrangement, its executions and
// its launches.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "crossover/backend.h"

namespace crossover::cuda {

/// Plans, as far as that needs no GPU; GpuBackend adds what does.
class PlannedGpu : public Backend {
 public:
  /// `reason`: why it runs nothing.
  explicit PlannedGpu(std::string reason = "") : reason_(std::move(reason)) {}
  [[nodiscard]] Description describe() const override;
  [[nodiscard]] std::string missing_for(Precision precision) const override;
  [[nodiscard]] Workload optimize(Workload workload, const CompileOptions& options) const override;
  [[nodiscard]] std::vector<Execution> executions(const Workload& workload,
                                                  Precision precision) const override;
  /// Assumes that cuBLASLt has an algorithm for each requested epilogue.
  [[nodiscard]] Estimate estimate(const Workload& workload,
                                  const CompileOptions& options) const override;
  [[nodiscard]] std::unique_ptr<Plan> plan(const Workload& workload,
                                           const CompileOptions& options) const override;
  [[nodiscard]] std::unique_ptr<Probe> make_probe(const ProbeSpec& spec) const override;

  /// What Execution::automatic tries: each execution with the choices of algorithms that the
  /// options have, the plainest first, and then, from the other end, with algorithms that are
  /// timed. An order of one step, and one that copies or reports between its steps, is not run as
  /// a whole. Never empty.
  [[nodiscard]] std::vector<Choice> choices(const Workload& workload,
                                            const CompileOptions& options) const;

 private:
  std::string reason_;
};

}  // namespace crossover::cuda
