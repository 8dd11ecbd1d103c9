// SPDX-License-Identifier: Apache-2.0
// What the command line says of the axes, and the ways to run on a GPU that follow from it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <type_traits>
#include <vector>

#include "axes/axes.h"
#include "axes/flag.h"

namespace crossover::bench {

class Choices {
 public:
  /// Reads the text after the flag of an axis, each value once. UsageError where it can't be.
  void take(const Axis& axis, const std::string& text);

  [[nodiscard]] bool has(const Axis& axis) const { return given_.contains(axis.key); }

  template <class Member>
  [[nodiscard]] bool has(Member RowSpec::*member) const {
    return has(axis_of(member));
  }

  /// The values that were given of those that programs on that device have; where none were, the
  /// default: the one that stays unsaid or else the plainest.
  [[nodiscard]] std::vector<std::string> on(const Axis& axis, AxisDevices device,
                                            bool training) const;

  /// Whether on() are given values.
  [[nodiscard]] bool has_on(const Axis& axis, AxisDevices device, bool training) const;

  /// The values that were given; where none were, the one that stays unsaid or else the plainest;
  /// empty for an axis that has neither.
  [[nodiscard]] std::vector<std::string> of(const Axis& axis) const;

  /// The same as values of the member.
  template <class Member>
  [[nodiscard]] std::vector<ValueOf<Member>> of(Member RowSpec::*member) const {
    const Axis& axis = axis_of(member);
    std::vector<ValueOf<Member>> values;
    for (const std::string& text : of(axis)) {
      RowSpec spec;
      axis.write(spec, text);
      if constexpr (std::is_same_v<Member, ValueOf<Member>>) {
        values.push_back(spec.*member);
      } else {
        values.push_back(value_of(spec, member));
      }
    }
    return values;
  }

 private:
  [[nodiscard]] std::vector<std::string> given_on(const Axis& axis, AxisDevices device,
                                                  bool training) const;

  std::map<std::string, std::vector<std::string>> given_;  ///< by key
};

/// The flags of all axes that have one, in the order of names.
std::vector<Flag> axis_flags(Choices& to);

/// The ways of a device to run, without its threads: each has a value for each axis that programs
/// there have.
struct DeviceModes {
  std::vector<RowSpec> of_training;
  std::vector<RowSpec> of_operations;  ///< by themselves

  friend bool operator==(const DeviceModes&, const DeviceModes&) = default;
};

/// `swept`: how the sweep trains where no flag names one of the axes in it. Of a GPU's modes those
/// that come to the same as another are left out; UsageError where none is left.
DeviceModes modes_on(AxisDevices device, const Choices& choices, const std::vector<RowSpec>& swept);

/// Each execution that a GPU's training has, with the data in each place; that changes fastest.
std::vector<RowSpec> every_gpu_mode();

/// Whether a GPU's Program runs as the mode says: a whole epoch runs by itself only where nothing
/// is copied or read between its steps.
bool makes_sense(const RowSpec& mode, bool loss_every_step);

/// Whether forward passes have the mode. A pass by itself is a graph of its own, and no pass before
/// it computes while its batch is copied.
bool is_of_passes(const RowSpec& mode);

}  // namespace crossover::bench
