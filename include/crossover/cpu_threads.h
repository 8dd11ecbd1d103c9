// SPDX-License-Identifier: Apache-2.0
// The size from which a kernel uses several CPU threads: below it a second thread costs more than
// it gains (measured at batch 100: docs/method/backends.md).
#pragma once

namespace crossover {

inline constexpr double flops_worth_threads = 1e6;           ///< of a matrix product
inline constexpr double bytes_worth_threads = 256.0 * 1024;  ///< of a pass over memory

}  // namespace crossover
