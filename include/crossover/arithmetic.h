// SPDX-License-Identifier: Apache-2.0
// What the kernels of a library do where its manual leaves it open, as far as it changes results.
#pragma once

#include <string>

namespace crossover {

/// What becomes of a factor with more bits than tf32 has. Ordered by the error.
enum class Tf32Factors {
  exact,      ///< nothing: the kernel multiplies in f32
  rounded,    ///< to nearest
  truncated,  ///< towards zero: up to a whole unit in the last place is lost
};
std::string to_string(Tf32Factors factors);

struct Arithmetic {
  Tf32Factors tf32 = Tf32Factors::rounded;  ///< the coarsest of all products
  /// Some gradient passes a ReLU whose input was exactly 0: its derivative there is 1, and not 0 as
  /// in the reference. Both are subgradients.
  bool relu_passes_zero = false;
};

}  // namespace crossover
