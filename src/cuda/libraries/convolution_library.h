// SPDX-License-Identifier: Apache-2.0
// Convolutions as a library offers them: the plans that it has for a form, and one of them, made.
// Planner and programs know no more of it; cudnn_library.h is the one that runs.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <functional>
#include <memory>

#include "convolution_form.h"
#include "crossover/tensor.h"

namespace crossover::cuda {

/// Addresses of x, w and y, one of which the form's pass writes; bias is null without one.
struct ConvolutionOperands {
  void* x = nullptr;
  void* w = nullptr;
  void* y = nullptr;
  const void* bias = nullptr;
  void* workspace = nullptr;
  std::int64_t workspace_bytes = 0;
};

/// One form by one plan.
class ConvolutionPlan {
 public:
  ConvolutionPlan() = default;
  ConvolutionPlan(const ConvolutionPlan&) = delete;
  ConvolutionPlan& operator=(const ConvolutionPlan&) = delete;
  virtual ~ConvolutionPlan() = default;

  /// Puts it into the stream. Throws DeviceFailed and OutOfMemory; another std::runtime_error where
  /// the library refuses after all to run what it proposed.
  virtual void execute(cudaStream_t stream, const ConvolutionOperands& operands) const = 0;
};

class ConvolutionLibrary {
 public:
  ConvolutionLibrary() = default;
  ConvolutionLibrary(const ConvolutionLibrary&) = delete;
  ConvolutionLibrary& operator=(const ConvolutionLibrary&) = delete;
  virtual ~ConvolutionLibrary() = default;

  /// How many plans it proposes for the form; 0: it has none. Throws Unsupported where there is no
  /// library.
  [[nodiscard]] virtual int plans(const ConvolutionForm& form) = 0;

  /// The plan of that number, from 0, the library's best guess. It ends before the library does.
  /// Throws what execute() throws.
  [[nodiscard]] virtual std::unique_ptr<ConvolutionPlan> make(const ConvolutionForm& form,
                                                              int plan) = 0;
};

using MakeConvolutionLibrary = std::function<std::unique_ptr<ConvolutionLibrary>(Precision)>;

}  // namespace crossover::cuda
