// SPDX-License-Identifier: Apache-2.0
// How a library's kernels round where its manual does not say, as far as it affects results.
#pragma once

#include <string>

namespace crossover {

/// How a factor with more bits than tf32 is handled. In order of increasing error.
enum class Tf32Factors {
  exact,      ///< unchanged: the kernel multiplies in f32
  rounded,    ///< to nearest
  truncated,  ///< towards zero: up to a whole unit in the last place is lost
};
std::string to_string(Tf32Factors factors);

struct Arithmetic {
  Tf32Factors tf32 = Tf32Factors::rounded;  ///< the coarsest over all products
  /// Some kernel takes ReLU's derivative at exactly 0 as 1, not as 0 like the reference. Both are
  /// subgradients.
  bool relu_passes_zero = false;
};

}  // namespace crossover
