// SPDX-License-Identifier: Apache-2.0
// What NVRTC compiles for one network: the text of kernels/tailored.cuh, of what that includes, and
// the network's constants.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "launches/tailored_shape.h"

namespace crossover::cuda {

struct TailoredHeader {
  const char* name;  ///< as it is included
  const char* text;
};

/// NVRTC has no headers: all that are needed.
std::span<const TailoredHeader> tailored_headers();

/// `capability`: 90 of 9.0.
std::vector<std::string> tailored_options(int capability);

inline constexpr const char* tailored_kernel_name = "tailored_kernel";

/// A program with that kernel, which takes tailored::Arguments.
std::string tailored_source(const tailored::Shape& shape);

}  // namespace crossover::cuda
