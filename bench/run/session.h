// SPDX-License-Identifier: Apache-2.0
// A run from its plan to its last line: what an earlier run has left is kept, the rest is measured,
// within a budget where there is one, shown and written.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/times.h"
#include "command_line/arguments.h"
#include "rows/device.h"
#include "rows/row.h"
#include "run/order.h"
#include "run/peer.h"
#include "worker/worker.h"

namespace crossover::bench {

/// What a run is made of, all of it ready.
struct Session {
  const Arguments& arguments;
  const std::vector<std::string>& command;  ///< the program first
  Devices& devices;
  Rows& rows;
  Worker& worker;                                   ///< of the rows that have none of their own
  const std::vector<std::unique_ptr<Peer>>& peers;  ///< whose rows are in the plan too
  Spent& spent;
};

/// Whether every row of the plan that had its turn has a result.
bool measure(Session& session, std::vector<PlannedRow> plan);

}  // namespace crossover::bench
