// SPDX-License-Identifier: Apache-2.0
// Rows that this process measures itself, by Google Benchmark.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/times.h"
#include "rows/watches.h"
#include "worker/row_server.h"
#include "worker/worker.h"

namespace crossover::bench {

/// Once, before any row is measured. `passed_on`: flags that Google Benchmark carries out itself.
/// UsageError where it does not.
void initialize_benchmark(const Effort& effort, const std::vector<std::string>& passed_on = {});

std::unique_ptr<Worker> local_worker(RowServer::Find find,
                                     std::unique_ptr<EnergyWatch> energy = nullptr);

}  // namespace crossover::bench
