// SPDX-License-Identifier: Apache-2.0
// The axes: the keys of a row's configuration, and all that is to be known of each. A new axis is a
// member of RowSpec and its line of the table in axes.cpp: its flag, help text and parsing, its
// place in names, the loop over its values and its description in the result file follow from it.
#pragma once

#include <algorithm>
#include <any>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "axes/row_spec.h"
#include "crossover/backend.h"

namespace crossover::bench {

// ---- The families of benchmarks, and what a sweep has to know of each. families/families.h has
// how their rows are planned and made.

/// What a family's rows train; forward passes use a network, and change nothing.
enum class Trains { nothing, forward_passes, steps, epochs };

struct BenchmarkFamily {
  RowFamily family = RowFamily::peak;
  std::string name;
  std::size_t worth = 0;  ///< where minutes count, a family of less worth comes behind: 0 is first
  Trains trains = Trains::nothing;  ///< crossovers are those of epochs
  bool bounds_others = false;       ///< ceilings
  bool flops_of_iteration =
      false;  ///< `flops` counts those of an iteration, not of one piece of work
};

/// In the order in which they are measured: ceilings before what they bound.
const std::vector<BenchmarkFamily>& families();

/// The row's. std::logic_error where it has none.
const BenchmarkFamily& family_of(const RowSpec& spec);

// ---- The axes

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
  AxisDevices devices = AxisDevices::none;   ///< rows on other devices do not say it in their names
  bool training_only = false;                ///< operations by themselves have no such choice
  std::map<std::string, ValueScope> scopes;  ///< of the values that not all of these programs have

  // The member of RowSpec; of another program's axis the element of its `others`.
  std::any member;  ///< a pointer to it; of `others` none
  /// The value, the unsaid one too; "" where the row has none.
  std::function<std::string(const RowSpec& spec)> read;
  /// std::logic_error where the axis does not have the value.
  std::function<void(RowSpec& spec, const std::string& value)> write;
  std::function<void(RowSpec& to, const RowSpec& from)> copy;

  /// Whether the row has another value than the one that names leave out.
  [[nodiscard]] bool is_said(const RowSpec& spec) const { return read(spec) != unsaid; }

  /// The values that programs on the CPU (or on a GPU), which train (or not), have, in the order of
  /// `values`.
  [[nodiscard]] std::vector<std::string> values_on(AxisDevices device, bool training) const;
};

/// Whether a device is among them.
bool includes(AxisDevices devices, AxisDevices device);

/// All axes, in the order of names.
const std::vector<Axis>& axes();

/// Of the family Function, beside its size and its device: the problem, the side that solves it,
/// and whether each call copies its data. Before any row has them.
void add_function_axes();
inline constexpr const char* problem_key = "problem";
inline constexpr const char* side_key = "side";
inline constexpr const char* transfers_key = "transfers";
inline constexpr const char* transfers_each = "each";
inline constexpr const char* caches_key = "caches";
inline constexpr const char* caches_flushed = "flushed";

/// Those of another program's rows, before any row has them: they stand before the threads in
/// names. One whose key is known is left out.
void add_axes(const std::vector<Axis>& more);

/// Throws std::logic_error where there is none of that key.
const Axis& find_axis(const std::string& key);

/// "what", "alike", "how".
std::string to_string(AxisRole role);

// ---- Of members

/// `Member` without its std::optional.
template <class Member>
struct ValueIn {
  using type = Member;
};
template <class Value>
struct ValueIn<std::optional<Value>> {
  using type = Value;
};
template <class Member>
using ValueOf = typename ValueIn<Member>::type;

/// Throws std::logic_error where the table lacks it.
template <class Member>
const Axis& axis_of(Member RowSpec::*member) {
  const auto at = std::ranges::find_if(axes(), [&](const Axis& axis) {
    const auto* const own = std::any_cast<Member RowSpec::*>(&axis.member);
    return own != nullptr && *own == member;
  });
  if (at == axes().end()) {
    throw std::logic_error("a member of RowSpec has no line in bench/axes/axes.cpp");
  }
  return *at;
}

/// std::logic_error where the row lacks it.
template <class Value>
const Value& value_of(const RowSpec& spec, std::optional<Value> RowSpec::*member) {
  if (!(spec.*member).has_value()) {
    throw std::logic_error("a configuration lacks '" + axis_of(member).key + "'");
  }
  return *(spec.*member);
}

/// As names have it: "graph-epoch", "64"; the unsaid value, too, and "" where the row has none.
template <class Member>
std::string text_of(const RowSpec& spec, Member RowSpec::*member) {
  return axis_of(member).read(spec);
}

// ---- Of whole rows

/// Keys and values, as names and JSON have them: in the order of the axes, without those that stay
/// unsaid.
using Configuration = std::vector<std::pair<std::string, std::string>>;
Configuration configuration_of(const RowSpec& spec);

/// {"execution": "fused", "cpu_threads": "1"}, and back: std::logic_error on a key that is no axis,
/// and on a value that its axis does not have.
nlohmann::ordered_json configuration_json(const RowSpec& spec);
RowSpec spec_in(const nlohmann::ordered_json& configuration);

/// The first, with all that the second says.
RowSpec overlaid(RowSpec first, const RowSpec& second);

/// What these axes say of the row.
RowSpec part_of(const RowSpec& spec, const std::function<bool(const Axis& axis)>& is_kept);

/// How to compile for the row, as far as it says; the rest is as CompileOptions are.
CompileOptions options_of(const RowSpec& spec);

/// What the row that was chosen says: on the CPU execution and threads, on a GPU execution and
/// choices of algorithms.
RowSpec spec_of(const Choice& choice, AxisDevices device);

/// "1 thread", "2 threads".
std::string words_of_threads(int threads);

}  // namespace crossover::bench
