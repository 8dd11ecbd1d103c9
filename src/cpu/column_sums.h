// SPDX-License-Identifier: Apache-2.0
// The gradient of a bias.
#pragma once

#include "lowering.h"

namespace crossover::cpu {

/// Adds a kernel: sums [columns] (+)= the sums of a tensor, seen as a matrix [leading, columns],
/// over its rows. `sums` is f32.
void add_column_sums(Lowering& to, Id matrix, Id sums, bool accumulate);

}  // namespace crossover::cpu
