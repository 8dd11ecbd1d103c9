// SPDX-License-Identifier: Apache-2.0
// The families of benchmarks.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "command_line/arguments.h"
#include "rows/device.h"
#include "rows/row.h"

namespace crossover::bench {

/// Plans the rows that the command line asks for. UsageError where it can't be carried out.
using Register = void (*)(const Arguments& arguments, Devices& devices, Rows& rows);

/// Whether a sweep of minutes (Sweep::by_worth) measures the row. `most_threads`: of its rows.
using IsWorthMinutes = bool (*)(const Row& row, const std::string& most_threads);

/// What a family's rows train.
enum class Trains { nothing, steps, epochs };

struct BenchmarkFamily {
  std::string name;
  Register register_rows;
  std::size_t worth = 0;  ///< where minutes count, a family of less worth comes behind: 0 is first
  Trains trains = Trains::nothing;            ///< crossovers are those of epochs
  IsWorthMinutes is_worth_minutes = nullptr;  ///< null: each of its rows is
  bool bounds_others = false;                 ///< ceilings
};

/// In the order in which they are measured: ceilings before what they bound. To add one: a file
/// beside this one, a line in sources.cmake and one in families.cpp.
const std::vector<BenchmarkFamily>& families();

/// Throws std::out_of_range where there is none of that name.
const BenchmarkFamily& find_family(const std::string& name);

/// All rows that the command line asks for. UsageError where it can't be carried out.
Rows register_all(const Arguments& arguments, Devices& devices);

/// Of the networks that the command line asks for, by name: of all that describe() says.
std::map<std::string, std::string> network_fingerprints(const Arguments& arguments);

/// Gives rows of these networks, without one so far, the fingerprint of theirs.
void note_networks(const Arguments& arguments, Rows& rows);

void register_peaks(const Arguments& arguments, Devices& devices, Rows& rows);
void register_copies(const Arguments& arguments, Devices& devices, Rows& rows);
void register_collectives(const Arguments& arguments, Devices& devices, Rows& rows);
void register_gemms(const Arguments& arguments, Devices& devices, Rows& rows);
void register_layers(const Arguments& arguments, Devices& devices, Rows& rows);
void register_epochs(const Arguments& arguments, Devices& devices, Rows& rows);
void register_minibatches(const Arguments& arguments, Devices& devices, Rows& rows);

bool is_copy_worth_minutes(const Row& row, const std::string& most_threads);
bool is_gemm_worth_minutes(const Row& row, const std::string& most_threads);
bool is_layer_worth_minutes(const Row& row, const std::string& most_threads);
bool is_epoch_worth_minutes(const Row& row, const std::string& most_threads);
bool is_minibatch_worth_minutes(const Row& row, const std::string& most_threads);

}  // namespace crossover::bench
