// SPDX-License-Identifier: Apache-2.0
// From each launch of a plan to the call that puts it into the stream, and what its time counts as.
// One overload for each launch, in the file of its family.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "../libraries/convolutions.h"
#include "../libraries/products.h"
#include "../planning/plan.h"

namespace crossover::cuda {

/// What launches are bound to. It is copied into the calls; what it points to must outlive them.
struct Binding {
  std::byte* block = nullptr;  ///< of the device
  cudaStream_t stream = nullptr;
  const LaunchPlan* plan = nullptr;
  Products* products = nullptr;
  Convolutions* convolutions = nullptr;
  std::int64_t workspace = 0;  ///< place of what the libraries use in this stream

  template <class T = void>
  [[nodiscard]] T* address(std::int64_t offset) const {
    return static_cast<T*>(static_cast<void*>(block + offset));
  }
  template <class T = void>
  [[nodiscard]] T* address(const Operand& operand, const Position& now) const {
    return address<T>(operand.at(now));
  }
  /// Null where there is none.
  template <class T = void>
  [[nodiscard]] T* maybe(const Operand& operand, const Position& now) const {
    return operand.exists() ? address<T>(operand, now) : nullptr;
  }
  [[nodiscard]] std::int64_t* run_counter() const { return address<std::int64_t>(plan->run); }
};

/// A binding to the second stream, whose launches need a workspace of their own.
inline Binding beside(Binding binding, cudaStream_t stream) {
  binding.stream = stream;
  binding.workspace += binding.plan->workspace_bytes;
  return binding;
}

/// Puts one launch of a step into the stream.
using Call = std::function<void(const Position&)>;

struct BoundLaunch {
  OpCategory category;  ///< of its time, in a profile
  Call call;
  Call beside = nullptr;  ///< the same in the second stream; none where it never runs there
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
BoundLaunch bind(const MeanLossLaunch& launch, const Binding& binding);
BoundLaunch bind(const AdvanceLaunch& launch, const Binding& binding);
BoundLaunch bind(const SgdLaunch& launch, const Binding& binding);
BoundLaunch bind(const AdamWTimeLaunch& launch, const Binding& binding);
BoundLaunch bind(const AdamWLaunch& launch, const Binding& binding);
BoundLaunch bind(const ConvolutionLaunch& launch, const Binding& binding);
BoundLaunch bind(const ChannelBiasLaunch& launch, const Binding& binding);
BoundLaunch bind(const BatchNormStatisticsLaunch& launch, const Binding& binding);
BoundLaunch bind(const BatchNormLaunch& launch, const Binding& binding);
BoundLaunch bind(const BatchNormGradSumsLaunch& launch, const Binding& binding);
BoundLaunch bind(const BatchNormGradLaunch& launch, const Binding& binding);
BoundLaunch bind(const MaxPoolLaunch& launch, const Binding& binding);
BoundLaunch bind(const MaxPoolGradLaunch& launch, const Binding& binding);
BoundLaunch bind(const AveragePoolLaunch& launch, const Binding& binding);
BoundLaunch bind(const AveragePoolGradLaunch& launch, const Binding& binding);
BoundLaunch bind(const GlobalAveragePoolLaunch& launch, const Binding& binding);
BoundLaunch bind(const GlobalAveragePoolGradLaunch& launch, const Binding& binding);
BoundLaunch bind(const ReshapeLaunch& launch, const Binding& binding);
BoundLaunch bind(const CountLaunch& launch, const Binding& binding);
BoundLaunch bind(const DropoutLaunch& launch, const Binding& binding);
BoundLaunch bind(const EmbeddingLaunch& launch, const Binding& binding);
BoundLaunch bind(const EmbeddingGradLaunch& launch, const Binding& binding);
BoundLaunch bind(const ZeroLaunch& launch, const Binding& binding);
BoundLaunch bind(const LstmGatesLaunch& launch, const Binding& binding);
BoundLaunch bind(const LstmGatesGradLaunch& launch, const Binding& binding);

/// All launches of the binding's plan, by step; those that may run beside others in a second stream
/// as well.
std::vector<BoundStep> bind_steps(const Binding& binding, cudaStream_t second);

/// Chooses an algorithm for each product of the plan: Products::choose(). Before anything is
/// uploaded: the products run on what the block holds, and write to it. Throws NoneRuns.
void choose_products(const Binding& binding, ProductChoice choice);

/// The same for each convolution: Convolutions::choose().
void choose_convolutions(const Binding& binding, ConvolutionChoice choice);

/// What the chosen algorithms do where the library's manual leaves it open. As above.
Arithmetic measure_products(const Binding& binding, Precision precision);
Arithmetic measure_convolutions(const Binding& binding, Precision precision);

}  // namespace crossover::cuda
