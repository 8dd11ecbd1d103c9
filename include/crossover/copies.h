// SPDX-License-Identifier: Apache-2.0
// Copies of a network that train at once (TrainingOptions::copies), side by side.
#pragma once

#include <cstdint>
#include <memory>

#include "crossover/backend.h"

namespace crossover {

/// Compiles a training of so many copies for `own`, which must outlive it: each copy as a Program
/// of its own. On the CPU each thread trains some of the copies, one after the other, and each copy
/// has one thread; on a GPU each copy has a stream. What Execution::automatic comes to is decided
/// with the first copy alone. Each copy has the rows for itself.
std::unique_ptr<Backend> make_copies_backend(const Backend& own, std::int64_t copies);

}  // namespace crossover
