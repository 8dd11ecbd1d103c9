// SPDX-License-Identifier: Apache-2.0
// What the command line says of the axes, and the ways to run on a GPU that follow from it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "command_line/axes.h"
#include "command_line/flag.h"

namespace crossover::bench {

class Choices {
 public:
  /// Reads the text after the flag of an axis, each value once. UsageError where it can't be.
  void take(const Axis& axis, const std::string& text);

  [[nodiscard]] bool has(const std::string& key) const { return given_.contains(key); }

  /// The values that were given of those that programs on that device have; where none were, the
  /// default: the one that stays unsaid or else the plainest.
  [[nodiscard]] std::vector<std::string> on(const Axis& axis, AxisDevices device,
                                            bool training) const;

  /// Whether on() are given values.
  [[nodiscard]] bool has_on(const Axis& axis, AxisDevices device, bool training) const;

  /// The values that were given; where none were, the one that stays unsaid or else the plainest;
  /// empty for an axis that has neither.
  [[nodiscard]] std::vector<std::string> of(const std::string& key) const;

  /// The same as numbers.
  [[nodiscard]] std::vector<std::int64_t> numbers(const std::string& key) const;

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
  std::vector<Configuration> of_training;
  std::vector<Configuration> of_operations;  ///< by themselves

  friend bool operator==(const DeviceModes&, const DeviceModes&) = default;
};

/// `swept`: how the sweep trains where no flag names one of the axes in it. Of a GPU's modes those
/// that come to the same as another are left out; UsageError where none is left.
DeviceModes modes_on(AxisDevices device, const Choices& choices,
                     const std::vector<Configuration>& swept);

/// All values of these axes that a GPU's training has, combined; the last axis changes fastest.
std::vector<Configuration> every_gpu_mode(const std::vector<std::string>& keys);

/// Whether a GPU's Program runs as the mode says: a whole epoch runs by itself only where nothing
/// is copied or read between its steps.
bool makes_sense(const Configuration& mode, bool loss_every_step);

/// Whether forward passes have the mode. A pass by itself is a graph of its own, and no pass before
/// it computes while its batch is copied.
bool is_of_passes(const Configuration& mode);

}  // namespace crossover::bench
