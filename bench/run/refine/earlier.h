// SPDX-License-Identifier: Apache-2.0
// What the file of an interrupted run says to a refinement.
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "file/earlier_run.h"

namespace crossover::bench {

struct EarlierSizes {
  std::map<std::string, std::vector<double>> seconds;  ///< of repetitions, by row
  std::vector<std::string> models;                     ///< of ladders, some in between
  nlohmann::ordered_json refinements = nlohmann::ordered_json::array();

  /// A refinement came to its end.
  [[nodiscard]] bool is_refined() const;
};

/// Of the rows that `counts` says of by name; others need not be read. UsageError where something
/// there is not as we write it.
EarlierSizes earlier_sizes(const EarlierRun& run,
                           const std::function<bool(const std::string& row)>& counts);

}  // namespace crossover::bench
