// SPDX-License-Identifier: Apache-2.0
// A kernel that is compiled for one network when a program is made.
#pragma once

#include <cuda_runtime.h>

#include <memory>
#include <string>

#include "../plan/launches/tailored_arguments.h"

namespace crossover::cuda {

class TailoredKernel {
 public:
  TailoredKernel() = default;
  TailoredKernel(const TailoredKernel&) = delete;
  TailoredKernel& operator=(const TailoredKernel&) = delete;
  virtual ~TailoredKernel() = default;

  /// One block, or cluster, for each of the copies. Throws DeviceFailed.
  virtual void launch(cudaStream_t stream, const tailored::Arguments& arguments,
                      int copies) const = 0;
};

/// On the thread's device: compiled by NVRTC, or as it was kept from an earlier time. Throws
/// Unsupported without NVRTC, and where it can't compile the kernel.
std::unique_ptr<TailoredKernel> make_tailored_kernel(const tailored::Shape& shape);

}  // namespace crossover::cuda
