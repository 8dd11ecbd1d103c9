// SPDX-License-Identifier: Apache-2.0
#include "rows/record.h"

#include <algorithm>
#include <iterator>

#include "rows/facts.h"

namespace crossover::bench {

std::string to_string(Outcome outcome) {
  switch (outcome) {
    case Outcome::measured:
      return "measured";
    case Outcome::failed:
      return "failed";
    case Outcome::skipped:
      return "skipped";
  }
  return "";
}

Configuration Record::chosen() const {
  const auto at = facts.find("chosen");
  return at == facts.end() ? Configuration() : configuration_in(*at);
}

std::vector<double> Record::seconds() const {
  std::vector<double> all;
  std::transform(repetitions.begin(), repetitions.end(), std::back_inserter(all),
                 [](const Repetition& repetition) { return repetition.seconds; });
  return all;
}

}  // namespace crossover::bench
