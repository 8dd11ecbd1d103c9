// SPDX-License-Identifier: Apache-2.0
// `bench --check`: tries in a child what works on this machine. A check that crashes or hangs ends
// the child, and the next one finds a new child.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "check/checks.h"
#include "command_line/arguments.h"
#include "worker/bench_worker.h"

namespace crossover::bench {

/// The worker's answer to {"do": "check"}: `verdict` and `reason`, `device_failed` where the device
/// is lost. `tell` is told what it is at.
Json run_check(const std::vector<Check>& checks, const std::string& name,
               const std::function<void(const std::string& doing)>& tell);

/// Answers that request, for serve_rows().
OtherRequests checking();

/// Prints the table of what --benchmark_filter selects, and writes it to --out. `words`: the
/// command line without the program.
void check_machine(Arguments arguments, const std::vector<std::string>& words);

}  // namespace crossover::bench
