// SPDX-License-Identifier: Apache-2.0
// Convolutions on cuDNN. Linked in its place where CMake found none: cudnn_absent.cpp.
#pragma once

#include <memory>
#include <string>

#include "library.h"

namespace crossover::cuda {

/// "9.19.0"; empty in a build without it.
std::string cudnn_version();

/// With the workspace that programs have. f32 multiplies in full single precision, tf32 on tensor
/// cores that keep 10 bits of a factor's mantissa; sums are f32 in any precision.
std::unique_ptr<ConvolutionLibrary> make_cudnn_library(Precision precision);

}  // namespace crossover::cuda
