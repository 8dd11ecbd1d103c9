// SPDX-License-Identifier: Apache-2.0
// The kernels of a Program, bound to its memory: nothing is left to decide.
#pragma once

#include <cstdint>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <span>
#include <vector>

#include "block.h"
#include "crossover/backend.h"
#include "invocation.h"
#include "lowering.h"
#include "primitive.h"
#include "tensors.h"

namespace crossover::cpu {

struct Kernel {
  OpCategory category;
  int threads;  ///< that must be in force when it is called
  Loop loop;
  std::vector<Operand> operands;

  void call(const Position& now) const { loop({operands.data(), now, threads}); }
};

/// Memory that kernels share, because they run one after another.
struct Scratch {
  std::int64_t primitive_bytes = 0;  ///< what a primitive asks for
  std::int64_t copies_bytes = 0;     ///< operands in another layout than their tensors'
  std::int64_t workspace_bytes = 0;  ///< what the kernels of one operation pass on

  [[nodiscard]] std::int64_t bytes() const {
    return primitive_bytes + copies_bytes + workspace_bytes;
  }
};

class BoundSteps {
 public:
  /// The primitives of `steps` are described for `engine`. Throws OutOfMemory, dnnl::error.
  BoundSteps(const std::vector<std::vector<PlannedKernel>>& steps, const Tensors& tensors,
             const Scratch& scratch, const dnnl::engine& engine, int threads);

  [[nodiscard]] std::span<const Kernel> operator[](int step) const {
    return steps_[static_cast<std::size_t>(step)];
  }

 private:
  Kernel bind(const PlannedKernel& kernel, const Tensors& tensors);
  [[nodiscard]] Operand operand(const Place& place, const Tensors& tensors) const;

  const dnnl::engine engine_;
  const dnnl::stream stream_;
  const Block primitive_scratch_;
  const Block copies_;
  const Block workspace_;
  std::vector<std::unique_ptr<BoundPrimitive>> primitives_;
  std::vector<std::vector<Kernel>> steps_;
};

}  // namespace crossover::cpu
