// SPDX-License-Identifier: Apache-2.0
// Rows that the host's memory does not hold are skipped before they take it.
#pragma once

#include <cstdint>
#include <string>

#include "command_line/arguments.h"

namespace crossover::bench {

/// Throws OutOfMemory where `bytes` are more than the command line or the machine leaves this
/// process. `purpose`: "to train and verify disc-2".
void require_memory(const Arguments& arguments, double bytes, const std::string& purpose);

/// By how much memory sizes are chosen that depend on it: the same in all processes of a run, and
/// at any moment. Without --planned-memory half of all that there is, at least.
std::int64_t planned_memory_bytes(const Arguments& arguments);

}  // namespace crossover::bench
