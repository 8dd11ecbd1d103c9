// SPDX-License-Identifier: Apache-2.0
// What is told of the networks of rows: what training or using one costs, its fingerprint, what a
// result file has of it, and what a run and other programs ask.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "command_line/arguments.h"
#include "crossover/catalogue.h"
#include "rows/devices.h"
#include "rows/row.h"
#include "run/peer.h"
#include "run/refine/contest.h"

namespace crossover::bench {

/// The cost of the one network, batch size and precision that the command line names;
/// docs/method/timed.md defines the fields. Throws UsageError where it names none or several, or
/// where the numbers are beyond counting.
nlohmann::ordered_json cost_json(const Arguments& arguments);

/// Of all that describe() says of the network.
std::string network_fingerprint(const Task& task);

/// Gives rows of the networks that the command line asks for, without one so far, the fingerprint
/// of theirs.
void note_networks(const Arguments& arguments, Rows& rows);

/// The context of a result file, with the networks that the command line asks for, their ladders
/// and their data, and with how the CPU's threads run. `command`: the program first.
nlohmann::ordered_json context_json(const Arguments& arguments,
                                    const std::vector<std::string>& command,
                                    const Devices& devices);

/// `arguments` outlive what asks for them.
NetworkFacts network_facts(const Arguments& arguments);

Ladders ladders_of(const std::vector<Family>& networks = catalogue());

/// Adds all rows of that network of a ladder that the command line would have: those that stand
/// there stay.
void add_size(const std::string& model, const Arguments& arguments, Devices& devices, Rows& rows,
              const std::vector<Family>& networks = catalogue());

}  // namespace crossover::bench
