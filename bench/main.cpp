// SPDX-License-Identifier: Apache-2.0
// bench: reads the command line, registers rows, lets Google Benchmark run them, keeps what they
// measure.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <optional>
#include <regex>

#include "arguments.h"
#include "context.h"
#include "crossover/machine.h"
#include "epoch.h"
#include "reporter.h"
#include "result_file.h"
#include "row.h"

namespace crossover::bench {
namespace {

constexpr int exit_row_failed = 1;
constexpr int exit_usage = 2;

/// The last value of one of Google Benchmark's flags, which are passed on as they are.
std::optional<std::string> passed_value(const Arguments& arguments, const std::string& flag) {
  std::optional<std::string> value;
  for (const std::string& argument : arguments.passed_on) {
    if (argument.starts_with(flag + "=")) {
      value = argument.substr(flag.size() + 1);
    } else if (argument == flag) {
      value = "true";
    }
  }
  return value;
}

bool is_listing(const Arguments& arguments) {
  const std::string listing = passed_value(arguments, "--benchmark_list_tests").value_or("false");
  return listing != "false" && listing != "0";
}

/// The rows that --benchmark_filter selects: a regular expression anywhere in the name, "-" before
/// it selects the others.
std::vector<std::string> selected(const Arguments& arguments, const Rows& rows) {
  std::string filter = passed_value(arguments, "--benchmark_filter").value_or("");
  if (filter.empty() || filter == "all") {
    return rows.names();
  }
  const bool others = filter.front() == '-';
  filter.erase(0, others ? 1 : 0);
  std::vector<std::string> names;
  try {
    const std::regex pattern(filter, std::regex::extended);
    for (const std::string& name : rows.names()) {
      if (std::regex_search(name, pattern) != others) {
        names.push_back(name);
      }
    }
  } catch (const std::regex_error&) {
    throw UsageError("--benchmark_filter=" + filter + " is no regular expression");
  }
  if (names.empty()) {
    throw UsageError("--benchmark_filter=" + filter + " matches none of the " +
                     std::to_string(rows.names().size()) +
                     " rows; --benchmark_list_tests lists them");
  }
  return names;
}

/// Hands the flags over to Google Benchmark, which keeps pointers to them.
void initialize(std::vector<std::string>& flags) {
  std::vector<char*> pointers;
  for (std::string& flag : flags) {
    pointers.push_back(flag.data());
  }
  int count = static_cast<int>(pointers.size());
  pointers.push_back(nullptr);
  benchmark::Initialize(&count, pointers.data());
  if (count > 1) {
    throw UsageError("Google Benchmark does not accept " + std::string(pointers[1]));
  }
}

int measure(const Arguments& arguments, const std::vector<std::string>& command) {
  const std::unique_ptr<Backend> backend = make_cpu_backend();
  Rows rows;
  EpochFamily epochs(arguments, *backend, rows);
  epochs.register_rows();
  const std::vector<std::string> names = selected(arguments, rows);

  std::vector<std::string> flags{
      "bench", "--benchmark_repetitions=" + std::to_string(arguments.sweep.repetitions),
      "--benchmark_min_time=" + std::to_string(arguments.sweep.min_time_seconds)};
  flags.insert(flags.end(), arguments.passed_on.begin(), arguments.passed_on.end());
  const auto number_of = [&](const char* flag, double otherwise) {
    const auto value = passed_value(arguments, flag);
    return value ? std::strtod(value->c_str(), nullptr) : otherwise;
  };
  const auto repetitions =
      static_cast<int>(number_of("--benchmark_repetitions", arguments.sweep.repetitions));
  const double min_time = number_of("--benchmark_min_time", arguments.sweep.min_time_seconds);
  initialize(flags);
  if (is_listing(arguments)) {
    benchmark::RunSpecifiedBenchmarks();
    return 0;
  }

  std::optional<ResultFile> file;
  if (arguments.out) {
    file.emplace(*arguments.out, context_json(arguments, command, repetitions, min_time, *backend));
  }
  const bool standard_format = passed_value(arguments, "--benchmark_format").has_value();
  Reporter reporter(rows, names, file ? &*file : nullptr,
                    std::unique_ptr<benchmark::BenchmarkReporter>(
                        standard_format ? benchmark::CreateDefaultDisplayReporter() : nullptr),
                    [&](const std::string& name) { epochs.release(name); });
  benchmark::RunSpecifiedBenchmarks(&reporter);
  benchmark::Shutdown();
  const int unmeasured = reporter.unmeasured();
  if (unmeasured > 0) {
    std::cerr << "bench: " << unmeasured << " of " << names.size() << " rows were not measured"
              << std::endl;
  }
  if (file) {
    const bool successful = unmeasured == 0;
    std::cerr << "bench: results in " << file->finish(successful).string() << std::endl;
  }
  return unmeasured > 0 ? exit_row_failed : 0;
}

int run(const std::vector<std::string>& command) {
  const Arguments arguments = parse({command.begin() + 1, command.end()});
  switch (arguments.action) {
    case Action::help:
      std::cout << help() << std::flush;
      benchmark::PrintDefaultHelp();
      return 0;
    case Action::machine:
      std::cout << machine_json().dump(1) << std::endl;
      return 0;
    case Action::commit:
      std::cout << commit_line() << std::endl;
      return 0;
    case Action::models:
      for (const Family& family : catalogue()) {
        for (const std::string& name : family.names) {
          std::cout << name << "\n";
        }
      }
      return 0;
    case Action::measure:
      return measure(arguments, command);
  }
  return exit_usage;
}

}  // namespace
}  // namespace crossover::bench

int main(int argc, char** argv) {
  using namespace crossover::bench;
  try {
    return run({argv, argv + argc});
  } catch (const UsageError& error) {
    std::cerr << "bench: " << error.what() << std::endl;
    return exit_usage;
  } catch (const std::exception& error) {
    std::cerr << "bench: " << error.what() << std::endl;
    return exit_row_failed;
  }
}
