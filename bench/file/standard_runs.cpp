// SPDX-License-Identifier: Apache-2.0
#include "file/standard_runs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "file/row_json.h"

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

// Google Benchmark 1.8 renamed Run::error_occurred and error_message. These know either.

template <class AnyRun>
bool has_error(const AnyRun& run) {
  if constexpr (requires { run.error_occurred; }) {
    return run.error_occurred;
  } else {
    return static_cast<bool>(run.skipped);
  }
}

template <class AnyRun>
void set_error(AnyRun& run, const std::string& message) {
  if constexpr (requires { run.error_occurred; }) {
    run.error_occurred = true;
    run.error_message = message;
  } else {
    run.skipped = decltype(run.skipped)(2);  // SkippedWithError
    run.skip_message = message;
  }
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

std::vector<StandardRun> standard_runs(const std::string& name, const Row& row) {
  StandardRun common;
  common.run_name.function_name = name;
  common.run_type = StandardRun::RT_Iteration;
  common.threads = 1;
  common.time_unit = benchmark::kMillisecond;
  common.repetitions = std::max<std::int64_t>(1, std::ssize(row.record.repetitions));
  common.report_label = row.record.facts.value("label", "");
  for (const auto& [key, value] : row.record.facts.items()) {
    if (value.is_number()) {
      common.counters[key] = value.get<double>();
    }
  }
  std::vector<StandardRun> runs;
  for (const Repetition& repetition : row.record.repetitions) {
    for (const auto& [key, value] : repetition.counters) {  // what was measured once stays
      common.counters[key] = value;
    }
    StandardRun& run = runs.emplace_back(common);
    run.repetition_index = std::ssize(runs) - 1;
    run.iterations = repetition.iterations;
    run.real_accumulated_time = repetition.seconds * static_cast<double>(run.iterations);
    run.cpu_accumulated_time = repetition.cpu_seconds * static_cast<double>(run.iterations);
    if (row.derive != nullptr) {
      row.derive(run.counters, repetition.seconds);
    }
  }
  if (row.record.outcome != Outcome::measured) {
    common.counters.clear();
    set_error(runs.emplace_back(common), row.record.reason);
  }
  return runs;
}

std::vector<StandardRun> aggregates(const std::vector<StandardRun>& runs) {
  std::vector<const StandardRun*> measured;
  for (const StandardRun& run : runs) {
    if (!has_error(run)) {
      measured.push_back(&run);
    }
  }
  if (measured.size() < 2) {
    return {};
  }
  const auto each = [&](auto value) {
    Values values;
    for (const StandardRun* run : measured) {
      values.push_back(value(*run));
    }
    return values;
  };
  const auto per_iteration = [](double accumulated, const StandardRun& run) {
    return accumulated / static_cast<double>(run.iterations);
  };
  std::vector<StandardRun> found;
  for (const Statistic& statistic : statistics) {
    StandardRun run = *measured.front();
    run.run_type = StandardRun::RT_Aggregate;
    run.repetition_index = StandardRun::no_repetition_index;
    run.aggregate_name = statistic.name;
    run.aggregate_unit = statistic.unit;
    run.iterations = static_cast<benchmark::IterationCount>(measured.size());
    // What is shown is divided by the iterations, but for percentages.
    const double scale =
        statistic.unit == benchmark::kTime ? static_cast<double>(measured.size()) : 1;
    run.real_accumulated_time = scale * statistic.of(each([&](const StandardRun& one) {
      return per_iteration(one.real_accumulated_time, one);
    }));
    run.cpu_accumulated_time = scale * statistic.of(each([&](const StandardRun& one) {
      return per_iteration(one.cpu_accumulated_time, one);
    }));
    for (auto& [name, counter] : run.counters) {
      counter.value = statistic.of(each([&name = name](const StandardRun& one) {
        const auto at = one.counters.find(name);
        return at != one.counters.end() ? at->second.value : 0;
      }));
    }
    found.push_back(std::move(run));
  }
  return found;
}

std::vector<nlohmann::ordered_json> aggregates_json(const std::vector<StandardRun>& runs) {
  std::vector<nlohmann::ordered_json> entries;
  for (const StandardRun& run : runs) {
    const bool is_time = run.aggregate_unit == benchmark::kTime;
    entries.push_back(
        {{"name", run.run_name.str() + "_" + run.aggregate_name},
         {"run_name", run.run_name.str()},
         {"run_type", "aggregate"},
         {"aggregate_name", run.aggregate_name},
         {"aggregate_unit", is_time ? "time" : "percentage"},
         {"real_time",
          number_json(is_time ? run.GetAdjustedRealTime() : run.real_accumulated_time)},
         {"cpu_time", number_json(is_time ? run.GetAdjustedCPUTime() : run.cpu_accumulated_time)},
         {"time_unit", benchmark::GetTimeUnitString(run.time_unit)}});
  }
  return entries;
}

}  // namespace crossover::bench
