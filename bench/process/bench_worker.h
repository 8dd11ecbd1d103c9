// SPDX-License-Identifier: Apache-2.0
// bench as the worker that measures its own rows, each made from its configuration: in a child with
// the same command line, or in this process.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "command_line/arguments.h"
#include "families/device.h"
#include "families/families.h"
#include "worker/row_server.h"
#include "worker/worker.h"

namespace crossover::bench {

/// Answers requests that are not of rows; none to those that are. `tell`: what it is at.
using OtherRequests = std::function<std::optional<Json>(
    const Json& request, const Arguments& arguments, Devices& devices,
    const std::function<void(const std::string& doing)>& tell)>;

/// `bench --worker`: answers requests on standard input until there are no more. `ranks`: that this
/// process is one of; of these the first one answers, the others follow it.
void serve_rows(Arguments arguments, Ranks* ranks, const OtherRequests& others);

/// The devices as a child describes them. Where the GPU's driver ends the child that asks for a
/// GPU, or lets it wait for so long, the next child goes on without.
Devices devices_in(WorkerProcess& child, double limit_seconds);

/// Bench's own rows. `context` outlives what it finds.
RowServer::Find row_finder(RowContext& context);

}  // namespace crossover::bench
