// SPDX-License-Identifier: Apache-2.0
// bench: reads the command line, registers rows, and measures them.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <iostream>
#include <new>
#include <utility>

#include "build_info.h"
#include "command_line/arguments.h"
#include "command_line/benchmark_flags.h"
#include "file/context.h"
#include "rows/cost.h"
#include "rows/device.h"
#include "rows/families.h"
#include "rows/row.h"
#include "run/budget.h"
#include "run/say.h"
#include "run/schedule.h"
#include "run/session.h"
#include "run/spent.h"

namespace crossover::bench {
namespace {

constexpr int exit_row_failed = 1;
constexpr int exit_usage = 2;

Rows registered(const Arguments& arguments, Devices& devices) {
  Rows rows;
  for (const BenchmarkFamily& family : families()) {
    const auto& wanted = arguments.families;
    if (std::find(wanted.begin(), wanted.end(), family.name) != wanted.end()) {
      family.register_rows(arguments, devices, rows);
    }
  }
  return rows;
}

int measure(Arguments arguments, const std::vector<std::string>& command, Spent& spent) {
  Devices devices = find_devices(arguments.cuda);
  const bool only_plans = arguments.action == Action::plan;
  if (only_plans && devices.gpus().empty() && arguments.cuda != CudaUse::off) {
    devices.all.push_back(planned_gpu());
  }
  BenchmarkFlags flags(arguments.passed_on, arguments.sweep.repetitions,
                       arguments.sweep.min_time_seconds);
  arguments.sweep.repetitions = flags.repetitions();
  arguments.sweep.min_time_seconds = flags.min_time_seconds();
  Rows rows = registered(arguments, devices);
  std::vector<PlannedRow> plan = schedule(rows, flags.select(rows.names()), arguments.sweep);
  if (arguments.budget_seconds && !arguments.sweep.by_worth) {
    plan = by_question(plan, rows);
  }
  if (arguments.budget_seconds && flags.shuffles()) {
    throw UsageError(
        "--budget measures first what matters most, --benchmark_enable_random_interleaving in "
        "random order; drop one of them");
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
  if (arguments.action == Action::context) {
    std::cout << context_json(arguments, command, flags, devices).dump(1) << std::endl;
    return 0;
  }
  if (flags.lists_only()) {
    for (const PlannedRow& row : plan) {
      std::cout << row.name << "\n";
    }
    return 0;
  }
  Session session{arguments, command, flags, devices, rows, spent};
  return measure(session, std::move(plan)) ? 0 : exit_row_failed;
}

int run(const std::vector<std::string>& command, Spent& spent) {
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
    case Action::context:
      return measure(arguments, command, spent);
  }
  return exit_usage;
}

}  // namespace
}  // namespace crossover::bench

int main(int argc, char** argv) {
  using namespace crossover::bench;
  Spent spent;
  try {
    return run({argv, argv + argc}, spent);
  } catch (const UsageError& error) {
    say(error.what());
    return exit_usage;
  } catch (const std::bad_alloc&) {
    say("out of memory; the result file has the rows that were finished");
    return exit_row_failed;
  } catch (const std::exception& error) {
    say(error.what());
    return exit_row_failed;
  }
}
