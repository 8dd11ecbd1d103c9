// SPDX-License-Identifier: Apache-2.0
// What rows are made from, in the process that measures them: the command line, the devices, and
// what rows that train one network share.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "command_line/arguments.h"
#include "rows/device.h"

namespace crossover::bench {

class Training;

class RowContext {
 public:
  RowContext(const Arguments& its_arguments, Devices& its_devices);
  RowContext(const RowContext&) = delete;
  RowContext& operator=(const RowContext&) = delete;
  ~RowContext();

  /// Of the family of that configuration, which trains networks.
  Training& training_of(const Configuration& row);

  /// The fingerprint of the network that the row is of; empty where it is of none.
  [[nodiscard]] std::string network_of(const Configuration& row) const;

  const Arguments& arguments;
  Devices& devices;

 private:
  std::map<std::string, std::unique_ptr<Training>> trainings_;  ///< by family
};

}  // namespace crossover::bench
