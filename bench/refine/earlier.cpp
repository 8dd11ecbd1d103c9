// SPDX-License-Identifier: Apache-2.0
#include "earlier.h"

#include <algorithm>

namespace crossover::bench {
namespace {

using Json = nlohmann::ordered_json;

double unit_seconds(const std::string& unit) {
  static const std::map<std::string, double> units{
      {"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};
  const auto at = units.find(unit);
  return at == units.end() ? 0 : at->second;
}

}  // namespace

bool EarlierSizes::is_refined() const {
  return std::any_of(refinements.begin(), refinements.end(),
                     [](const Json& one) { return one.value("complete", false); });
}

EarlierSizes earlier_sizes(const EarlierRun& run) {
  EarlierSizes found;
  const std::string start = "Epoch/model:disc-";
  for (const WrittenRow& row : run.rows) {
    if (!row.name.starts_with(start)) {
      continue;
    }
    const Json facts = Json::parse(row.facts);
    const std::string model = facts.at("configuration").value("model", "");
    if (std::find(found.models.begin(), found.models.end(), model) == found.models.end()) {
      found.models.push_back(model);
    }
    for (const std::string& line : row.entries) {
      const Json entry = Json::parse(line);
      if (entry.value("run_type", "") == "iteration") {
        found.seconds[row.name].push_back(entry.value("real_time", 0.0) *
                                          unit_seconds(entry.value("time_unit", "")));
      }
    }
  }
  if (run.context.contains("crossover") && run.context["crossover"].contains("refinements")) {
    found.refinements = run.context["crossover"]["refinements"];
  }
  return found;
}

}  // namespace crossover::bench
