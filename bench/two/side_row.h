// SPDX-License-Identifier: Apache-2.0
// A side of a problem as a row: made, compared with the right result, then timed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "crossover/two.h"
#include "rows/row.h"

namespace crossover::two {

/// A side at one size.
struct SideAt {
  Work& work;
  std::size_t side = 0;
  std::int64_t size = 0;
  bool copies_each = false;  ///< each call copies its input there, and its result back
  bool flushes = false;      ///< the caches are overwritten before each call
};

/// Throws what ends a row: Unsupported where its device is missing, std::runtime_error with a
/// sentence where its result is wrong, or where it returns before its work is done.
std::unique_ptr<bench::PreparedBenchmark> make_row(const SideAt& at, bench::Result& result);

}  // namespace crossover::two
