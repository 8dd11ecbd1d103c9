// SPDX-License-Identifier: Apache-2.0
// From each launch of a plan to the call that puts it into the stream, and what its time counts as.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "../base/site.h"
#include "../kernels/gather.cuh"
#include "../libraries/algorithms.h"
#include "../libraries/library.h"
#include "../plan/plan.h"

namespace crossover::cuda {

class SecondStream;

/// What launches are bound to. It is copied into the calls; what it points to must outlive them.
struct Binding {
  std::byte* block = nullptr;  ///< of the device
  cudaStream_t stream = nullptr;
  const LaunchPlan* plan = nullptr;
  Products* products = nullptr;
  Convolutions* convolutions = nullptr;
  Sdpas* sdpas = nullptr;
  Collectives* collectives = nullptr;    ///< none of a process alone
  const SecondStream* second = nullptr;  ///< for sums beside the others
  std::int64_t workspace = 0;            ///< place of the libraries' in this stream

  template <class T = void>
  [[nodiscard]] T* address(std::int64_t offset) const {
    return static_cast<T*>(static_cast<void*>(block + offset));
  }
  [[nodiscard]] Address address(const Operand& operand, const Position& now) const {
    return {operand.exists() ? address(operand.at(now)) : nullptr, operand.type};
  }
  [[nodiscard]] Site site() const;
};

/// A binding to the second stream, whose launches need a workspace of their own.
inline Binding in_second_stream(Binding binding, cudaStream_t stream) {
  binding.stream = stream;
  binding.workspace += binding.plan->workspace_bytes;
  return binding;
}

/// Puts one launch of a step into the stream.
using Call = std::function<void(const Position&)>;

struct BoundLaunch {
  OpCategory category;  ///< of its time, in a profile
  Call call;
  Call in_second_stream = nullptr;  ///< none where it never runs there
};
using BoundStep = std::vector<BoundLaunch>;

/// All launches of the binding's plan, by step; those that may run beside others in a second stream
/// as well.
std::vector<BoundStep> bind_steps(const Binding& binding, cudaStream_t second);

/// A launch at once, whose operands stay where they are.
void call(const CastLaunch& cast, const Binding& binding);

/// What brings a step's rows of a resident data set into its staging buffer from within a graph:
/// one kernel, or none where the step reads no rows.
void gather(const StepPlan& step, const Binding& binding);
/// At the head of a loop's body. The step reads rows.
void gather_in_loop(const StepPlan& step, const Binding& binding, const LoopCondition& condition);

/// Chooses an algorithm for each product, convolution and attention of the plan:
/// Algorithms::choose(). Before anything is uploaded: they run on what the block holds, and write
/// to it. Throws NoneRuns.
void choose_algorithms(const Binding& binding, const CompileOptions& options);

/// What those algorithms do where the library's manual leaves it open. As above.
Arithmetic measure_arithmetic(const Binding& binding, Precision precision);

}  // namespace crossover::cuda
