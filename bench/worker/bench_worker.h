// SPDX-License-Identifier: Apache-2.0
// bench as the worker that measures its own rows: in a child, which registers the rows of the same
// command line, or in this process.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "command_line/arguments.h"
#include "rows/device.h"
#include "rows/row.h"
#include "worker/worker.h"

namespace crossover::bench {

/// `bench --worker`: answers requests on standard input until there are no more. `ranks`: that this
/// process is one of; of these the first one answers, the others follow it.
void serve_rows(Arguments arguments, Ranks* ranks);

/// This program as a child of its own; `words`: the command line without the program.
std::unique_ptr<WorkerProcess> start_bench_worker(const std::vector<std::string>& words);

/// The devices as a child describes them. Where the GPU's driver ends the child that asks for a
/// GPU, or lets it wait for so long, the next child goes on without.
Devices devices_in(WorkerProcess& child, double limit_seconds);

/// In this process, over its rows.
std::unique_ptr<Worker> local_bench_worker(Rows& rows);

}  // namespace crossover::bench
