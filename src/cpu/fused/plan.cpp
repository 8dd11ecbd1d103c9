// SPDX-License-Identifier: Apache-2.0
#include "plan.h"

#include "../threads.h"
#include "crossover/training.h"
#include "pass.h"
#include "program.h"

namespace crossover::cpu {
namespace {

class FusedPlan : public Plan {
 public:
  FusedPlan(const Workload& workload, const CompileOptions& options)
      : workload_(workload),
        options_(options),
        training_(dense_training(workload)),
        bytes_(bytes_of(options.keep_activations)) {}

  [[nodiscard]] std::int64_t bytes() const override { return bytes_; }
  [[nodiscard]] std::int64_t bytes_keeping_activations() const override { return bytes_of(true); }
  [[nodiscard]] std::int64_t launches() const override { return 1; }
  [[nodiscard]] std::unique_ptr<Program> instantiate() override {
    flush_denormals(options_.threads);  // before the first number is computed
    return std::make_unique<fused::FusedProgram>(workload_, training_, options_, bytes_);
  }

 private:
  [[nodiscard]] std::int64_t bytes_of(bool keep_activations) const {
    fused::Arena arena;
    fused::Memory memory(workload_.tensors);
    static_cast<void>(
        fused::bind_steps(workload_, training_, options_.threads, keep_activations, arena, memory));
    return arena.bytes();
  }

  const Workload workload_;
  const CompileOptions options_;
  const std::vector<DenseStep> training_;
  const std::int64_t bytes_;
};

}  // namespace

bool trains(const Workload& workload) { return !tensors_of(workload, Role::loss).empty(); }

std::unique_ptr<Plan> plan_fused(const Workload& workload, const CompileOptions& options) {
  if (options.precision != Precision::f32) {
    throw Unsupported("fused execution computes in f32, not in " + to_string(options.precision));
  }
  if (!trains(workload)) {
    return plan_pass(workload);
  }
  return std::make_unique<FusedPlan>(workload, options);
}

}  // namespace crossover::cpu
