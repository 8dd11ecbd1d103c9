// SPDX-License-Identifier: Apache-2.0
// The context of a result file: machine, libraries, compiler, commit, how it was measured. What it
// has of networks is families/networks.h's.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/times.h"
#include "rows/devices.h"

namespace crossover::bench {

/// The wall clock's date, for readers alone: "2026-11-21T01:02:03+00:00".
std::string now_in_utc();

/// The machine's record, as --machine prints it.
nlohmann::ordered_json machine_json(const Devices& devices);

/// What the program was built from and with, and the devices' libraries.
nlohmann::ordered_json software_json(const Devices& devices);

/// The short commit, "-dirty" behind it where the tree differed, or "unknown".
std::string commit_line();

/// By the bytes of a file: what its name does not tell.
std::string fingerprint_of_file(const std::string& path);

/// Result files are shared: of paths on the user's machine only the file's name is kept.
std::string without_folders(const std::string& path);

/// Google Benchmark's own context, and "crossover" in it; results/README.md defines the fields.
/// `command`: the program first.
nlohmann::ordered_json context_json(const std::vector<std::string>& command,
                                    const std::string& sweep, const Effort& effort,
                                    const Devices& devices);

}  // namespace crossover::bench
