// SPDX-License-Identifier: Apache-2.0
// A Backend that compiles for another one in a way of its own, and is that one in all else.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "crossover/backend.h"

namespace crossover {

/// What derives from it says how to estimate and to plan.
class BackendOver : public Backend {
 public:
  /// `own` must outlive it.
  explicit BackendOver(const Backend& own) : own_(own) {}

  [[nodiscard]] Description describe() const override { return own_.describe(); }
  [[nodiscard]] GpuState state() const override { return own_.state(); }
  [[nodiscard]] std::string missing_for(Precision precision) const override {
    return own_.missing_for(precision);
  }
  [[nodiscard]] Workload optimize(Workload workload, const CompileOptions& options) const override {
    return own_.optimize(std::move(workload), options);
  }
  [[nodiscard]] std::vector<Execution> executions(const Workload& workload,
                                                  Precision precision) const override {
    return own_.executions(workload, precision);
  }
  [[nodiscard]] std::unique_ptr<Probe> make_probe(const ProbeSpec& spec) const override {
    return own_.make_probe(spec);
  }

 protected:
  [[nodiscard]] const Backend& own() const { return own_; }

 private:
  const Backend& own_;
};

}  // namespace crossover
