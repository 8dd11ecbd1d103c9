// SPDX-License-Identifier: Apache-2.0
// The context of a result file: machine, libraries, compiler, commit, configuration.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "command_line/arguments.h"
#include "rows/device.h"

namespace crossover::bench {

/// The wall clock's date, for readers alone: "2026-11-21T01:02:03+00:00".
std::string now_in_utc();

/// The machine's record, as --machine prints it.
nlohmann::ordered_json machine_json(const Devices& devices);

/// What the program was built from and with, and the devices' libraries.
nlohmann::ordered_json software_json(const Devices& devices);

/// The short commit, "-dirty" behind it where the tree differed, or "unknown".
std::string commit_line();

/// Google Benchmark's own context, and "crossover" in it; results/README.md defines the fields.
nlohmann::ordered_json context_json(const Arguments& arguments,
                                    const std::vector<std::string>& command,
                                    const Devices& devices);

}  // namespace crossover::bench
