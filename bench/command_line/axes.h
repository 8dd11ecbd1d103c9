// SPDX-License-Identifier: Apache-2.0
// The axes: the keys of a row's configuration, and all that is to be known of each. A new axis, or
// a new value of one, is a line of the table in axes.cpp: its flag, help text and parsing, its
// place in names, the loop over its values and its description in the result file follow from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "crossover/backend.h"

namespace crossover::bench {

// ---- The families of benchmarks, and what a sweep has to know of each. rows/families.h has how
// their rows are planned and made.

/// What a family's rows train; forward passes use a network, and change nothing.
enum class Trains { nothing, forward_passes, steps, epochs };

struct BenchmarkFamily {
  std::string name;
  std::size_t worth = 0;  ///< where minutes count, a family of less worth comes behind: 0 is first
  Trains trains = Trains::nothing;  ///< crossovers are those of epochs
  bool bounds_others = false;       ///< ceilings
};

/// In the order in which they are measured: ceilings before what they bound.
const std::vector<BenchmarkFamily>& families();

/// Throws std::out_of_range where there is none of that name.
const BenchmarkFamily& find_family(const std::string& name);

// ---- The axes

/// Keys and values of a row.
using Configuration = std::vector<std::pair<std::string, std::string>>;

enum class AxisRole {
  what,   ///< what is computed
  alike,  ///< the same on both sides of a comparison, where the CPU has it
  how,    ///< how it is computed, and where
};

/// Whose programs have an axis, or a value of one.
enum class AxisDevices { none, cpu, gpu, both };

/// Which programs have a value of an axis.
struct ValueScope {
  AxisDevices devices = AxisDevices::both;
  bool training_only = false;  ///< operations by themselves are not run so
};

/// The flag that chooses values of an axis.
struct AxisFlag {
  std::string name;   ///< "--execution"; empty: there is none, and families decide
  std::string value;  ///< "NAME,..."; a flag without the dots takes one value
  std::string help;
  std::int64_t most = 0;  ///< the values are numbers from `least` to this; 0: they are names
  std::int64_t least = 1;
};

struct Axis {
  std::string key;
  AxisRole role = AxisRole::what;
  std::string description;          ///< for readers of the file
  std::vector<std::string> values;  ///< all, the plainest first; empty: numbers, or names at large
  std::string unsaid;               ///< the value that names leave out; empty: they say each
  AxisFlag flag;
  /// For an axis of CompileOptions: sets them to that value.
  std::function<void(CompileOptions& options, const std::string& value)> apply;
  AxisDevices devices = AxisDevices::none;   ///< rows on other devices do not say it in their names
  bool training_only = false;                ///< operations by themselves have no such choice
  std::map<std::string, ValueScope> scopes;  ///< of the values that not all of these programs have

  /// The values that programs on the CPU (or on a GPU), which train (or not), have, in the order of
  /// `values`.
  [[nodiscard]] std::vector<std::string> values_on(AxisDevices device, bool training) const;
};

/// Whether a device is among them.
bool includes(AxisDevices devices, AxisDevices device);

/// All axes, in the order of names.
const std::vector<Axis>& axes();

/// Those of another program's rows, before any row has them: they stand before the threads in
/// names. One whose key is known is left out.
void add_axes(const std::vector<Axis>& more);

/// Throws std::logic_error where there is none of that key.
const Axis& find_axis(const std::string& key);

/// "what", "alike", "how".
std::string to_string(AxisRole role);

/// In the order of names, without the values that stay unsaid. Throws std::logic_error on a key
/// that is no axis or occurs twice, and on a value that its axis does not have.
Configuration in_order(const Configuration& configuration);

/// Both, one after the other.
Configuration joined(Configuration first, const Configuration& second);

Configuration without(const std::string& key, Configuration configuration);

/// "eager"; std::logic_error where the configuration lacks the key.
const std::string& value_of(const Configuration& configuration, const std::string& key);

/// The same, and where it lacks the key the value that names leave unsaid, or "".
std::string value_or_unsaid(const Configuration& configuration, const std::string& key);

/// Whether it has another value than the one that names leave unsaid.
bool is_said(const Configuration& configuration, const std::string& key);

/// value_or_unsaid() as a number; std::logic_error where it is none.
std::int64_t number_of(const Configuration& configuration, const std::string& key);

/// "1 thread", "2 threads", of a value of cpu_threads.
std::string words_of_threads(const std::string& value);

/// What the values say of how to compile; the rest is as CompileOptions are.
CompileOptions options_of(const Configuration& configuration);

/// {{"execution", "fused"}, {"cpu_threads", "1"}}; on a GPU {{"execution", "graph"}} and the
/// choices of algorithms that names say.
Configuration configuration_of(const Choice& choice, AxisDevices device);

}  // namespace crossover::bench
