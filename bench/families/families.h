// SPDX-License-Identifier: Apache-2.0
// How the rows of each family of benchmarks are planned and made.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "axes/axes.h"
#include "command_line/arguments.h"
#include "crossover/shared_training.h"
#include "families/device.h"
#include "families/training/references.h"
#include "rows/row.h"

namespace crossover::bench {

/// What rows are made from, in the process that measures them: the command line, the devices, and
/// what rows that train one network share.
struct RowContext {
  RowContext(const Arguments& its_arguments, Devices& its_devices)
      : arguments(its_arguments), devices(its_devices), references(its_arguments.data) {}

  /// The fingerprint of the network that the row is of; empty where it is of none.
  [[nodiscard]] std::string network_of(const RowSpec& row) const;

  const Arguments& arguments;
  Devices& devices;
  References references;
};

/// Plans the rows that the command line asks for. UsageError where it can't be carried out.
using Register = void (*)(const Arguments& arguments, Devices& devices, Rows& rows);

/// Compiles and verifies the row, and fills in its result, which outlives
/// what is made. Throws Unsupported and OutOfMemory where the row can't be had, and anything else
/// where something is wrong.
using MakeRow = std::unique_ptr<PreparedBenchmark> (*)(RowContext& context, const RowSpec& row,
                                                       Result& result);

/// Whether a sweep of minutes (Sweep::by_worth) measures the row. `most_threads`: of its rows.
using IsWorthMinutes = bool (*)(const Row& row, int most_threads);

/// How a family's rows are planned and made. To add one: a file beside this one, a line of
/// functions in families.cpp, and a line of facts in axes/axes.cpp.
struct FamilyRows {
  RowFamily family = RowFamily::peak;
  Register register_rows = nullptr;
  MakeRow make = nullptr;
  IsWorthMinutes is_worth_minutes = nullptr;  ///< null: each of its rows is
};

/// Whether a sweep of minutes measures the row. `most_threads`: of its rows.
bool is_worth_minutes(const Row& row, int most_threads);

/// By its family. std::logic_error where that is none of bench's.
std::unique_ptr<PreparedBenchmark> make_row(RowContext& context, const RowSpec& row,
                                            Result& result);

/// What a rank that only follows needs to make its share of that row.
Followed followed(RowContext& context, const RowSpec& row);

/// All rows that the command line asks for. UsageError where it can't be carried out.
Rows register_all(const Arguments& arguments, Devices& devices);

void register_peaks(const Arguments& arguments, Devices& devices, Rows& rows);
void register_copies(const Arguments& arguments, Devices& devices, Rows& rows);
void register_collectives(const Arguments& arguments, Devices& devices, Rows& rows);
void register_gemms(const Arguments& arguments, Devices& devices, Rows& rows);
void register_layers(const Arguments& arguments, Devices& devices, Rows& rows);
void register_epochs(const Arguments& arguments, Devices& devices, Rows& rows);
void register_minibatches(const Arguments& arguments, Devices& devices, Rows& rows);
void register_passes(const Arguments& arguments, Devices& devices, Rows& rows);

std::unique_ptr<PreparedBenchmark> make_peak(RowContext& context, const RowSpec& row,
                                             Result& result);
std::unique_ptr<PreparedBenchmark> make_copy(RowContext& context, const RowSpec& row,
                                             Result& result);
std::unique_ptr<PreparedBenchmark> make_collective(RowContext& context, const RowSpec& row,
                                                   Result& result);
std::unique_ptr<PreparedBenchmark> make_gemm(RowContext& context, const RowSpec& row,
                                             Result& result);
std::unique_ptr<PreparedBenchmark> make_layer(RowContext& context, const RowSpec& row,
                                              Result& result);
std::unique_ptr<PreparedBenchmark> make_training(RowContext& context, const RowSpec& row,
                                                 Result& result);
std::unique_ptr<PreparedBenchmark> make_pass(RowContext& context, const RowSpec& row,
                                             Result& result);

bool is_copy_worth_minutes(const Row& row, int most_threads);
bool is_gemm_worth_minutes(const Row& row, int most_threads);
bool is_layer_worth_minutes(const Row& row, int most_threads);
bool is_epoch_worth_minutes(const Row& row, int most_threads);
bool is_minibatch_worth_minutes(const Row& row, int most_threads);

}  // namespace crossover::bench
