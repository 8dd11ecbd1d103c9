// SPDX-License-Identifier: Apache-2.0
// A run from its plan to its last line: what an earlier run has left is kept, the rest is measured,
// within a budget where there is one, shown and written.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/times.h"
#include "rows/devices.h"
#include "rows/row.h"
#include "run/options.h"
#include "run/peer.h"
#include "run/plan.h"
#include "run/refine/contest.h"
#include "worker/worker.h"

namespace crossover::bench {

/// What a run is made of, all of it ready.
struct Session {
  const RunOptions& options;
  Devices& devices;
  Rows& rows;
  Worker& worker;                                   ///< of the rows that have none of their own
  const std::vector<std::unique_ptr<Peer>>& peers;  ///< whose rows are in the plan too
  Spent& spent;
  std::vector<std::string> remarks;  ///< on what is not measured, a sentence each
  // What the families of its rows know:
  NetworkFacts networks;
  Ladders ladders;
  std::function<nlohmann::ordered_json()> context;  ///< of the result file, but for the peers'
  /// Adds all rows of that network of a ladder: those that stand there stay.
  std::function<void(const std::string& model)> add_size;
};

/// Whether every row of the plan that had its turn has a result.
bool measure(Session& session, std::vector<PlannedRow> plan);

}  // namespace crossover::bench
