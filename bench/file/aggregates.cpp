// SPDX-License-Identifier: Apache-2.0
#include "file/aggregates.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace crossover::bench {
namespace {

using Values = std::vector<double>;

double mean(const Values& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double deviation(const Values& values) {
  const double middle = mean(values);
  const double squares = std::accumulate(
      values.begin(), values.end(), 0.0,
      [middle](double sum, double value) { return sum + (value - middle) * (value - middle); });
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

struct Statistic {
  const char* name;
  benchmark::StatisticUnit unit;
  double (*of)(const Values& values);
};

constexpr std::array<Statistic, 4> statistics{{
    {"mean", benchmark::kTime, mean},
    {"median", benchmark::kTime, [](const Values& values) { return median(values); }},
    {"stddev", benchmark::kTime, deviation},
    {"cv", benchmark::kPercentage, variation},
}};

}  // namespace

double median(Values values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double variation(const Values& values) {
  const double middle = mean(values);
  return middle == 0 ? 0 : deviation(values) / middle;
}

std::vector<Repetition> aggregates(const std::vector<Repetition>& runs) {
  std::vector<const Repetition*> measured;
  for (const Repetition& run : runs) {
    if (error_of(run).empty()) {
      measured.push_back(&run);
    }
  }
  if (measured.size() < 2) {
    return {};
  }
  const auto each = [&](auto value) {
    Values values;
    for (const Repetition* run : measured) {
      values.push_back(value(*run));
    }
    return values;
  };
  const auto per_iteration = [](double accumulated, const Repetition& run) {
    return accumulated / static_cast<double>(run.iterations);
  };
  std::vector<Repetition> found;
  for (const Statistic& statistic : statistics) {
    Repetition run = *measured.front();
    run.run_type = Repetition::RT_Aggregate;
    run.repetition_index = Repetition::no_repetition_index;
    run.aggregate_name = statistic.name;
    run.aggregate_unit = statistic.unit;
    run.iterations = static_cast<benchmark::IterationCount>(measured.size());
    // What is shown is divided by the iterations, but for percentages.
    const double scale =
        statistic.unit == benchmark::kTime ? static_cast<double>(measured.size()) : 1;
    run.real_accumulated_time = scale * statistic.of(each([&](const Repetition& one) {
      return per_iteration(one.real_accumulated_time, one);
    }));
    run.cpu_accumulated_time = scale * statistic.of(each([&](const Repetition& one) {
      return per_iteration(one.cpu_accumulated_time, one);
    }));
    for (auto& [name, counter] : run.counters) {
      counter.value = statistic.of(each([&name = name](const Repetition& one) {
        const auto at = one.counters.find(name);
        return at != one.counters.end() ? at->second.value : 0;
      }));
    }
    found.push_back(std::move(run));
  }
  return found;
}

}  // namespace crossover::bench
