// SPDX-License-Identifier: Apache-2.0
// From each launch of a plan to the call that puts it into the stream, and what its time counts as.
// One overload for each launch, in the file of its family.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "../plan.h"
#include "../product.h"

namespace crossover::cuda {

/// What launches are bound to. It is copied into the calls; what it points to must outlive them.
struct Binding {
  std::byte* block = nullptr;  ///< of the device
  cudaStream_t stream = nullptr;
  const LaunchPlan* plan = nullptr;
  ProductLibrary* products = nullptr;

  template <class T = void>
  [[nodiscard]] T* address(std::int64_t offset) const {
    return static_cast<T*>(static_cast<void*>(block + offset));
  }
  template <class T = void>
  [[nodiscard]] T* address(const Operand& operand, const Position& now) const {
    return address<T>(operand.at(now));
  }
  [[nodiscard]] std::int64_t* run_counter() const { return address<std::int64_t>(plan->run); }
};

/// Puts one launch of a step into the stream.
using Call = std::function<void(const Position&)>;

struct BoundLaunch {
  OpCategory category;  ///< of its time, in a profile
  Call call;
};
using BoundStep = std::vector<BoundLaunch>;

BoundLaunch bind(const ProductLaunch& launch, const Binding& binding);
BoundLaunch bind(const BiasActivateLaunch& launch, const Binding& binding);
BoundLaunch bind(const CastLaunch& launch, const Binding& binding);
BoundLaunch bind(const ActivateLaunch& launch, const Binding& binding);
BoundLaunch bind(const ActivateGradLaunch& launch, const Binding& binding);
BoundLaunch bind(const AddLaunch& launch, const Binding& binding);
BoundLaunch bind(const ColumnSumsLaunch& launch, const Binding& binding);
BoundLaunch bind(const LossLaunch& launch, const Binding& binding);
BoundLaunch bind(const AdvanceLaunch& launch, const Binding& binding);
BoundLaunch bind(const SgdLaunch& launch, const Binding& binding);
BoundLaunch bind(const AdamWTimeLaunch& launch, const Binding& binding);
BoundLaunch bind(const AdamWLaunch& launch, const Binding& binding);

/// All launches of the binding's plan, by step.
std::vector<BoundStep> bind_steps(const Binding& binding);

/// Leaves the library the fastest algorithm for each product of the plan. Before anything is
/// uploaded: the products run on what the block holds, and write to it.
void autotune_products(const Binding& binding);

}  // namespace crossover::cuda
