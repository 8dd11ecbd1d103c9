// SPDX-License-Identifier: Apache-2.0
// What the families of single operations (Gemm, Layer) share: many short rows, each over operands
// that lie on the device, each a Workload that repeats its operation until that takes longer than
// to start it and to read the clock.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "command_line/arguments.h"
#include "crossover/backend.h"
#include "crossover/cost.h"
#include "families/device.h"
#include "families/work.h"
#include "rows/row.h"

namespace crossover::bench {

/// The rows of an operation: on one thread and all cores, or what --threads says; on a GPU eagerly,
/// or as --execution says. One that a backend runs on one thread anyway has no rows of more, unless
/// --threads asks for them.
std::vector<RowSpec> operation_rows(const Arguments& arguments, const Devices& devices,
                                    const RowSpec& what, const Cost& operation);

/// How often an iteration repeats an operation: decided from its size, so that rows of all devices
/// do the same.
std::int64_t repeats(const Cost& operation);

/// Sets the row's repetitions, least time and expected seconds; Google Benchmark's flags go before.
void set_effort(Row& row, const Arguments& arguments, const ExpectedWork& work, int threads);

/// Numbers in [-1, 1), different for each salt.
std::vector<double> operand_values(std::int64_t count, std::int64_t salt);

/// One iteration runs the Workload's whole order.
class PreparedOperation : public PreparedBenchmark {
 public:
  /// OutOfMemory where the host does not have the Program's bytes and `more_bytes` (for what, says
  /// `purpose`: "for the operands").
  PreparedOperation(Workload workload, const Target& target, const Arguments& arguments,
                    double more_bytes, const std::string& purpose);

  void run() override {
    program_->enqueue(0, std::ssize(workload_.order));
    program_->wait();
  }

  [[nodiscard]] const Workload& workload() const { return workload_; }
  [[nodiscard]] Program& program() { return *program_; }

  /// The counters that all families of operations have, and the minimum work, of a verified row.
  void count(const Cost& operation, const Target& target, Result& result) const;

 private:
  Workload workload_;
  std::unique_ptr<Program> program_;
};

}  // namespace crossover::bench
