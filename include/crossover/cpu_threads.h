// SPDX-License-Identifier: Apache-2.0
// How threads of the CPU run, and the size from which a kernel uses several CPU threads: below it a
// second thread costs more than it gains (measured at batch 100: docs/method/backends.md).
#pragma once

#include <string>

namespace crossover {

/// Of this process.
struct ThreadSettings {
  std::string wait_policy;  ///< "active" or "passive" where variables of the environment say so,
                            ///< else "default": what the OpenMP library does
  std::string binding;      ///< "false", "true", "primary", "close", "spread": OMP_PROC_BIND
  int places = 0;           ///< that threads may be bound to: OMP_PLACES; 0: all of the machine
  int processors = 0;       ///< in these places; 0: all of the machine
  bool flush_denormals = false;  ///< they count as zero in Programs: the processor can (FTZ, DAZ)
};

ThreadSettings thread_settings();

inline constexpr double flops_worth_threads = 1e6;           ///< of a matrix product
inline constexpr double bytes_worth_threads = 256.0 * 1024;  ///< of a pass over memory

}  // namespace crossover
