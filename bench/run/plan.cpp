// SPDX-License-Identifier: Apache-2.0
#include "run/plan.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <iterator>
#include <stdexcept>

#include "axes/flag.h"
#include "crossover/regular_expression.h"

namespace crossover::bench {

std::vector<std::string> names_of(const std::vector<PlannedRow>& plan) {
  std::vector<std::string> names;
  std::ranges::transform(plan, std::back_inserter(names), &PlannedRow::name);
  return names;
}

std::vector<std::string> selected(const std::vector<std::string>& names,
                                  const std::string& filter) {
  if (filter.empty() || filter == "all") {
    return names;
  }
  const bool others = filter.front() == '-';
  std::vector<std::string> found;
  try {
    const RegularExpression pattern(filter.substr(others ? 1 : 0));
    std::ranges::copy_if(names, std::back_inserter(found),
                         [&](const std::string& name) { return pattern.is_in(name) != others; });
  } catch (const std::invalid_argument& fault) {
    throw UsageError("--benchmark_filter=" + filter +
                     " is not a regular expression: " + fault.what());
  }
  if (found.empty()) {
    throw UsageError("--benchmark_filter=" + filter +
                     " matches no row; --benchmark_list_tests lists their names");
  }
  return found;
}

void print(std::ostream& to, const std::vector<PlannedRow>& plan,
           std::optional<double> budget_seconds) {
  struct Sum {
    std::string of;
    int rows = 0;
    double seconds = 0;

    void add(double more) {
      ++rows;
      seconds += more;
    }
  };
  std::vector<Sum> passes;
  Sum all{.of = "all"};
  Sum open{.of = "left open"};
  std::array<char, 64> text{};
  for (const PlannedRow& planned : plan) {
    if (budget_seconds && all.seconds + planned.seconds > *budget_seconds) {
      open.add(planned.seconds);
      continue;
    }
    all.add(planned.seconds);
    if (passes.empty() || passes.back().of != planned.pass) {
      passes.push_back({.of = planned.pass});
    }
    passes.back().add(planned.seconds);
    std::snprintf(text.data(), text.size(), "%-9s %7.1f s %7.1f s  ", planned.pass.c_str(),
                  planned.seconds, all.seconds);
    to << text.data() << planned.name << "\n";
  }
  if (open.rows > 0) {
    passes.push_back(open);
  }
  passes.push_back(all);
  for (const Sum& sum : passes) {
    std::snprintf(text.data(), text.size(), "%-9s %5d rows %7.1f s\n", sum.of.c_str(), sum.rows,
                  sum.seconds);
    to << text.data();
  }
  to << std::flush;
}

}  // namespace crossover::bench
