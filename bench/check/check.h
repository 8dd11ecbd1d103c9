// SPDX-License-Identifier: Apache-2.0
// `bench --check`: tries in a child every operation, copy, probe and tiny network, in every way
// that a device can run it. A check that crashes or hangs ends the child, and the next one finds a
// new child.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "command_line/arguments.h"
#include "families/device.h"
#include "process/bench_worker.h"

namespace crossover::bench {

/// One of the things that a check does. `run` throws: Unsupported or OutOfMemory where the device
/// or a library refuses it, Mismatch where its result is wrong.
struct Part {
  std::string name;
  std::function<void()> run;
};

/// A line of the table.
struct Check {
  std::string device;     ///< "cuda"
  std::string what;       ///< "Convolution"
  std::string precision;  ///< "bf16"; empty: it has none
  std::string how;        ///< "graph"; empty: there is one way
  std::vector<Part> parts;
  /// Of CUDA: the first of a precision waits for them to be read, and to compile kernels.
  bool calls_libraries = false;

  [[nodiscard]] std::array<std::string, 4> columns() const {
    return {device, what, precision, how};
  }
  /// "cuda Convolution bf16 graph": no other check has it.
  [[nodiscard]] std::string name() const;
};

/// In the order of worth: the GPU's networks in every execution, its operations; then the CPU.
/// Whoever describes a GPU and whoever has it find the same names.
std::vector<Check> all_checks(const Arguments& arguments, Devices& devices);

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
