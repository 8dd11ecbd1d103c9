// SPDX-License-Identifier: Apache-2.0
// Rows that time a probe.
#pragma once

#include <memory>
#include <optional>

#include "command_line/arguments.h"
#include "crossover/probe.h"
#include "rows/row.h"

namespace crossover::bench {

Row probe_row(const Arguments& arguments, Device& device, Configuration configuration,
              const ProbeSpec& spec);

/// Counters: docs/method/copies.md and docs/method/ceilings.md. `minimum_work`: of one run; none
/// where no ceiling bounds it.
std::unique_ptr<PreparedBenchmark> make_probe_row(const Arguments& arguments, const Device& device,
                                                  const ProbeSpec& spec,
                                                  const std::optional<MinimumWork>& minimum_work,
                                                  Result& result);

/// Whether a probe takes at most a quarter of planned_memory_bytes(): a larger one is not planned.
bool is_modest(const Arguments& arguments, const ProbeSpec& spec);

}  // namespace crossover::bench
