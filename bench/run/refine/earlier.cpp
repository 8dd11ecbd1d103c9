// SPDX-License-Identifier: Apache-2.0
#include "run/refine/earlier.h"

#include <algorithm>

#include "command_line/flag.h"

namespace crossover::bench {
namespace {

using Json = nlohmann::ordered_json;

double unit_seconds(const std::string& unit) {
  static const std::map<std::string, double> units{
      {"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};
  const auto at = units.find(unit);
  return at == units.end() ? 0 : at->second;
}

void take_row(const WrittenRow& row, EarlierSizes& found) {
  const Json configuration = Json::parse(row.facts).at("configuration");
  const std::string model = configuration.at(configuration.contains("size") ? "size" : "model");
  if (std::find(found.models.begin(), found.models.end(), model) == found.models.end()) {
    found.models.push_back(model);
  }
  for (const std::string& line : row.entries) {
    const Json entry = Json::parse(line);
    if (entry.at("run_type") == "iteration") {
      found.seconds[row.name].push_back(entry.at("real_time").get<double>() *
                                        unit_seconds(entry.at("time_unit")));
    }
  }
}

}  // namespace

bool EarlierSizes::is_refined() const {
  return std::any_of(refinements.begin(), refinements.end(),
                     [](const Json& one) { return one.value("complete", false); });
}

EarlierSizes earlier_sizes(const EarlierRun& run,
                           const std::function<bool(const std::string& row)>& counts) {
  EarlierSizes found;
  std::string place = "refinements";
  try {
    if (const Json::json_pointer at("/crossover/refinements"); run.context.contains(at)) {
      found.refinements = run.context[at].get<Json::array_t>();
      static_cast<void>(found.is_refined());  // they are objects
    }
    for (const WrittenRow& row : run.rows) {
      if (counts(row.name)) {
        place = row.name;
        take_row(row, found);
      }
    }
  } catch (const Json::exception&) {
    throw UsageError("--resume: " + run.path.string() + " has " + place +
                     " that can't be read; without --resume the rows are measured anew");
  }
  return found;
}

}  // namespace crossover::bench
