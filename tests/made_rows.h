// SPDX-License-Identifier: Apache-2.0
// A worker in this process whose rows are made as a test says.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "../bench/worker/bench_worker.h"

namespace crossover::test {

/// By name.
using Makes =
    std::map<std::string,
             std::function<std::unique_ptr<bench::PreparedBenchmark>(bench::Result& result)>>;

inline std::unique_ptr<bench::Worker> worker_of(bench::Rows& rows, const Makes& makes) {
  return bench::local_worker([&](const std::string& name, const auto& /*configuration*/) {
    const bench::Row& row = rows[name];
    return bench::RowServer::Source{
        .device = row.device, .network = row.network, .make = makes.at(name)};
  });
}

}  // namespace crossover::test
