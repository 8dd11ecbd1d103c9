// SPDX-License-Identifier: Apache-2.0
#include "command_line/benchmark_flags.h"

#include <benchmark/benchmark.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <sstream>
#include <stdexcept>

#include "build_info.h"
#include "command_line/flag.h"
#include "crossover/regular_expression.h"

namespace crossover::bench {
namespace {

/// As Google Benchmark reads a boolean flag; one without a value is true.
bool is_true(std::string value) {
  std::transform(value.begin(), value.end(), value.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  constexpr std::array no{"0", "f", "n", "false", "no", "off"};
  return std::find(no.begin(), no.end(), value) == no.end();
}

/// Google Benchmark 1.7 refuses the unit that 1.8 and later ask for.
const char* min_time_suffix() {
  int major = 0;
  int minor = 0;
  std::istringstream version(build::benchmark_version);
  char dot = 0;
  version >> major >> dot >> minor;
  return major > 1 || minor >= 8 ? "s" : "";
}

}  // namespace

BenchmarkFlags::BenchmarkFlags(const std::vector<std::string>& arguments, int repetitions,
                               double min_time_seconds)
    : arguments_{"bench"}, repetitions_(repetitions), min_time_seconds_(min_time_seconds) {
  for (const std::string& argument : arguments) {
    const std::size_t equals = argument.find('=');
    values_[argument.substr(0, equals)] =
        equals == std::string::npos ? "true" : argument.substr(equals + 1);
  }
  if (const auto given = values_.find("--benchmark_repetitions"); given != values_.end()) {
    constexpr int most = 1000000;
    repetitions_ = parse_number<int>(given->first, given->second, 1, most);
  }
  if (const auto given = values_.find("--benchmark_min_time"); given != values_.end()) {
    constexpr double most = 1e6;
    const std::string& text = given->second;
    const bool suffixed =
        text.size() > 1 && text.back() == 's';  // "0.5s", as later versions write it
    min_time_seconds_ = parse_number<double>(
        given->first, text.substr(0, text.size() - (suffixed ? 1 : 0)), 0, most);
  }
  values_["--benchmark_repetitions"] = std::to_string(repetitions_);
  values_["--benchmark_min_time"] = std::to_string(min_time_seconds_) + min_time_suffix();
  for (const auto& [flag, value] : values_) {
    if (flag != "--benchmark_filter") {  // select() has done it
      arguments_.push_back(flag + "=" + value);
    }
  }
}

bool BenchmarkFlags::is_set(const std::string& flag) const {
  const auto given = values_.find(flag);
  return given != values_.end() && is_true(given->second);
}

bool BenchmarkFlags::lists_only() const { return is_set("--benchmark_list_tests"); }

bool BenchmarkFlags::shuffles() const { return is_set("--benchmark_enable_random_interleaving"); }

std::map<std::string, std::string> BenchmarkFlags::context() const {
  std::map<std::string, std::string> pairs;
  const auto given = values_.find("--benchmark_context");
  if (given == values_.end()) {
    return pairs;
  }
  for (const std::string& pair : split(given->second)) {
    const std::size_t equals = pair.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw UsageError("--benchmark_context=" + given->second + " is not key=value,...");
    }
    pairs[pair.substr(0, equals)] = pair.substr(equals + 1);
  }
  return pairs;
}

std::vector<std::string> BenchmarkFlags::select(const std::vector<std::string>& names) const {
  const auto given = values_.find("--benchmark_filter");
  const std::string filter = given == values_.end() ? "" : given->second;
  if (filter.empty() || filter == "all") {
    return names;
  }
  const bool others = filter.front() == '-';
  std::vector<std::string> selected;
  try {
    const RegularExpression pattern(filter.substr(others ? 1 : 0));
    std::copy_if(names.begin(), names.end(), std::back_inserter(selected),
                 [&](const std::string& name) { return pattern.is_in(name) != others; });
  } catch (const std::invalid_argument& fault) {
    throw UsageError("--benchmark_filter=" + filter +
                     " is not a regular expression: " + fault.what());
  }
  if (selected.empty()) {
    throw UsageError("--benchmark_filter=" + filter + " matches none of the " +
                     std::to_string(names.size()) + " names; --benchmark_list_tests lists them");
  }
  return selected;
}

void BenchmarkFlags::initialize() {
  std::vector<char*> pointers;
  pointers.reserve(arguments_.size() + 1);
  for (std::string& argument : arguments_) {
    pointers.push_back(argument.data());
  }
  int count = static_cast<int>(pointers.size());
  pointers.push_back(nullptr);
  benchmark::Initialize(&count, pointers.data());
  if (count > 1) {
    throw UsageError("Google Benchmark does not accept " + std::string(pointers[1]));
  }
}

BenchmarkFlags take_benchmark_flags(Arguments& arguments) {
  Effort& effort = arguments.sweep.effort;
  BenchmarkFlags flags(arguments.passed_on, effort.repetitions, effort.min_time_seconds);
  effort = {.repetitions = flags.repetitions(), .min_time_seconds = flags.min_time_seconds()};
  return flags;
}

std::vector<std::string> take_flags_from_environment() {
  const std::string prefix = "BENCHMARK_";
  std::vector<std::string> flags;
  std::vector<std::string> names;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::size_t equals = text.find('=');
    if (text.starts_with(prefix) && equals != std::string::npos) {
      names.push_back(text.substr(0, equals));
      std::string flag = names.back();
      std::transform(flag.begin(), flag.end(), flag.begin(),
                     [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
      flags.push_back("--" + flag + text.substr(equals));
    }
  }
  for (const std::string& name : names) {
    unsetenv(name.c_str());
  }
  return flags;
}

}  // namespace crossover::bench
