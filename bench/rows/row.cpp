// SPDX-License-Identifier: Apache-2.0
#include "rows/row.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "rows/facts.h"

namespace crossover::bench {

std::string row_name(const Configuration& configuration) {
  std::string name;
  for (const auto& [key, value] : configuration) {
    if (name.empty()) {
      name = value;
    } else {
      name.append("/").append(key).append(":").append(value);
    }
  }
  return name;
}

std::string family_of(const Row& row) { return value_of(row.configuration, "family"); }

void verify_or_note(Result& result, const std::function<void()>& verify) {
  result.tell("verifying it");
  try {
    verify();
  } catch (const Mismatch& mismatch) {
    result.not_verified = mismatch;
    result.first_steps.reset();  // nobody is to come to these
  }
}

bool is_in_f32(const Row& row) {
  const std::string precision = value_or_unsaid(row.configuration, "precision");
  return precision.empty() || precision == "f32";
}

void Rows::add(Row row) {
  row.configuration = in_order(row.configuration);
  const std::string name = row_name(row.configuration);
  if (rows_.emplace(name, std::move(row)).second) {
    names_.push_back(name);
  }
}

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

bool is_disturbed(const Repetition& repetition) {
  constexpr double tolerated = 0.05;  // of the time of its loop
  double lost = 0;
  for (const char* counter : {"cpu_wait", "cpu_steal"}) {
    const auto share = repetition.counters.find(counter);
    lost += share != repetition.counters.end() ? share->second : 0;
  }
  return lost > tolerated;
}

int Record::disturbed_repetitions() const {
  return static_cast<int>(std::count_if(repetitions.begin(), repetitions.end(), is_disturbed));
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
