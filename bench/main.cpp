// SPDX-License-Identifier: Apache-2.0
// bench: reads the command line, registers rows, lets Google Benchmark run them, keeps what they
// measure.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>

#include "arguments.h"
#include "benchmark_flags.h"
#include "build_info.h"
#include "context.h"
#include "cost.h"
#include "device.h"
#include "families.h"
#include "planned_gpu.h"
#include "reporter.h"
#include "result_file.h"
#include "row.h"
#include "say.h"
#include "schedule.h"

namespace crossover::bench {
namespace {

constexpr int exit_row_failed = 1;
constexpr int exit_usage = 2;

int measure(const Arguments& arguments, const std::vector<std::string>& command) {
  Devices devices = find_devices(arguments.cuda);
  const bool only_plans = arguments.action == Action::plan;
  if (only_plans && devices.gpus().empty() && arguments.cuda != CudaUse::off) {
    devices.all.push_back(planned_gpu());
  }
  Rows rows;
  for (const BenchmarkFamily& family : families()) {
    const auto& wanted = arguments.families;
    if (std::find(wanted.begin(), wanted.end(), family.name) != wanted.end()) {
      family.register_rows(arguments, devices, rows);
    }
  }

  BenchmarkFlags flags(arguments.passed_on, arguments.sweep.repetitions,
                       arguments.sweep.min_time_seconds);
  const std::vector<PlannedRow> plan = schedule(rows, flags.select(rows.names()), arguments.sweep);
  std::vector<std::string> names;
  names.reserve(plan.size());
  for (const PlannedRow& row : plan) {
    names.push_back(row.name);
  }
  if (arguments.out && flags.drops_samples()) {
    throw UsageError(
        "reporting aggregates only would leave the result file without samples; drop that flag or "
        "--out");
  }
  if (only_plans) {
    print(std::cout, plan);
    return 0;
  }
  flags.initialize();
  if (flags.lists_only()) {
    for (const std::string& name : names) {
      std::cout << name << "\n";
    }
    return 0;
  }
  rows.register_benchmarks(names, flags.min_time_seconds());

  std::optional<ResultFile> file;
  if (arguments.out) {
    file.emplace(*arguments.out, context_json(arguments, command, flags, devices));
  }
  if (devices.gpus().empty() && arguments.cuda != CudaUse::off) {
    say("no GPU rows: " + devices.gpu_reason);
  }
  Reporter reporter(
      rows, names,
      {.file = file ? &*file : nullptr,
       .aggregates = flags.wants_aggregates(),
       .standard = std::unique_ptr<benchmark::BenchmarkReporter>(
           flags.standard_format() ? benchmark::CreateDefaultDisplayReporter() : nullptr)});
  benchmark::RunSpecifiedBenchmarks(&reporter);
  benchmark::Shutdown();
  const int unmeasured = reporter.unmeasured();
  if (unmeasured > 0) {
    say(std::to_string(unmeasured) + " of " + std::to_string(names.size()) +
        " rows were not measured");
  }
  if (file) {
    say("results in " + file->finish(unmeasured == 0).string());
  }
  return unmeasured > 0 ? exit_row_failed : 0;
}

int run(const std::vector<std::string>& command) {
  std::vector<std::string> words = take_flags_from_environment();
  words.insert(words.end(), command.begin() + 1, command.end());
  const Arguments arguments = parse(words);
  switch (arguments.action) {
    case Action::help:
      std::cout << help() << std::flush;
      benchmark::PrintDefaultHelp();
      return 0;
    case Action::machine:
      std::cout << machine_json(find_devices(CudaUse::automatic)).dump(1) << std::endl;
      return 0;
    case Action::commit:
      std::cout << commit_line() << std::endl;
      return 0;
    case Action::version:
      std::cout << "bench " << build::version << std::endl;
      return 0;
    case Action::models:
      for (const Family& family : catalogue()) {
        for (const std::string& name : family.names) {
          std::cout << name << "\n";
        }
      }
      return 0;
    case Action::cost:
      std::cout << cost_json(arguments).dump(1) << std::endl;
      return 0;
    case Action::measure:
    case Action::plan:
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
    say(error.what());
    return exit_usage;
  } catch (const std::exception& error) {
    say(error.what());
    return exit_row_failed;
  }
}
