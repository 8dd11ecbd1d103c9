// SPDX-License-Identifier: Apache-2.0
// A program's problems as rows of the harness: planned, measured by this program as its own worker,
// kept in a result file.
#include "crossover/two.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <set>
#include <utility>

#include "axes/axes.h"
#include "axes/exit_code.h"
#include "axes/flag.h"
#include "base/say.h"
#include "base/start.h"
#include "base/times.h"
#include "file/context.h"
#include "rows/devices.h"
#include "rows/row.h"
#include "run/plan.h"
#include "run/session.h"
#include "two/options.h"
#include "two/side_row.h"
#include "worker/local_worker.h"

namespace crossover::two {
namespace {

using bench::Json;
using bench::RowSpec;
using bench::UsageError;
using Works = std::vector<std::unique_ptr<Work>>;

// ---- What the program says.

/// UsageError where it can't be part of a row's name.
void require_name(const std::string& what, const std::string& name) {
  constexpr std::size_t longest = 60;
  if (name.empty() || name.size() > longest || name.find('/') != std::string::npos ||
      bench::printable(name) != name) {
    throw UsageError("the name of a " + what + ", '" + name.substr(0, longest) +
                     "', has to have 1 to 60 characters, without '/' and without those that "
                     "nobody sees; change it in the program");
  }
}

void require_side(const Work& work, const Side& side) {
  require_name("side", side.name);
  const std::string whose = "side '" + side.name + "' of problem '" + work.name + "'";
  if (std::ranges::count(work.sides, side.name, &Side::name) > 1) {
    throw UsageError("two sides are called '" + side.name + "' in problem '" + work.name +
                     "'; give one another name");
  }
  if (side.device.kind != "cpu" && side.device.kind != "gpu") {
    throw UsageError("the device of " + whose + " is '" + side.device.kind +
                     "', not cpu or gpu; correct it in the program");
  }
  if (side.device.kind == "gpu" && side.device.name.empty() && side.device.missing.empty()) {
    throw UsageError("the GPU of " + whose + " has no name; write crossover::two::gpu(NAME, WAIT)");
  }
}

/// UsageError where a problem can't be measured.
void require_sense(const Works& works, bool flushes) {
  constexpr std::int64_t largest = 999'999'999'999'999;
  for (const auto& work : works) {
    require_name("problem", work->name);
    if (std::ranges::count(works, work->name, [](const auto& one) { return one->name; }) > 1) {
      throw UsageError("two problems are called '" + work->name + "'; give one another name");
    }
    if (work->sizes.empty() || work->sides.empty()) {
      throw UsageError("problem '" + work->name + "' has no " +
                       (work->sizes.empty() ? "sizes" : "sides") + "; add some in the program");
    }
    for (const std::int64_t size : work->sizes) {
      if (size < 1 || size > largest) {
        throw UsageError("problem '" + work->name + "' has the size " + std::to_string(size) +
                         "; sizes are from 1 to 999999999999999");
      }
    }
    for (const Side& side : work->sides) {
      require_side(*work, side);
      if (flushes && side.device.kind == "gpu" && side.device.missing.empty() &&
          !side.device.flush) {
        throw UsageError("--caches=flushed: nobody can flush the GPU of side '" + side.name +
                         "'; give its device a flush, or leave out the flag");
      }
    }
  }
}

/// The CPU, and the GPU that sides name. UsageError where they name several.
bench::Devices devices_of(const Works& works, bool leaves_gpu) {
  bench::Devices devices;
  devices.all.emplace_back();
  std::set<std::string> names;
  std::string missing;
  for (const auto& work : works) {
    for (const Side& side : work->sides) {
      if (side.device.kind == "gpu" && side.device.missing.empty()) {
        names.insert(side.device.name);
      } else if (side.device.kind == "gpu") {
        missing = side.device.missing;
      }
    }
  }
  if (names.size() > 1) {
    throw UsageError("sides name two GPUs, " + *names.begin() + " and " + *names.rbegin() +
                     "; a result file is of one: give them one name, or measure them in two runs");
  }
  if (leaves_gpu || names.empty()) {
    devices.missing["gpu"] = leaves_gpu ? "--gpu=off" : missing;
    return devices;
  }
  bench::Device& gpu = devices.all.emplace_back();
  gpu.kind = &backend_named("gpu");
  gpu.facts = {{"name", *names.begin()}};
  return devices;
}

// ---- Rows.

/// Of a side that copies two: with its data there, and with copies in each call.
std::vector<RowSpec> rows_of_side(const Work& work, const Side& side, std::int64_t size,
                                  bool flushes) {
  RowSpec row{.family = bench::RowFamily::function,
              .size = size,
              .device = side.device.kind,
              .others = {{bench::problem_key, work.name}, {bench::side_key, side.name}}};
  if (flushes) {
    row.others.emplace(bench::caches_key, bench::caches_flushed);
  }
  std::vector<RowSpec> rows{row};
  if (side.copies) {
    row.others.emplace(bench::transfers_key, bench::transfers_each);
    rows.push_back(std::move(row));
  }
  return rows;
}

/// What a row's configuration says. std::logic_error where this program has no such side.
SideAt side_of(const RowSpec& row, const Works& works) {
  const auto said = [&](const char* key) {
    const auto at = row.others.find(key);
    return at == row.others.end() ? "" : at->second;
  };
  const auto work =
      std::ranges::find(works, said(bench::problem_key), [](const auto& one) { return one->name; });
  if (work == works.end()) {
    throw std::logic_error("no problem is called '" + said(bench::problem_key) + "'");
  }
  const auto side = std::ranges::find((*work)->sides, said(bench::side_key), &Side::name);
  if (side == (*work)->sides.end()) {
    throw std::logic_error("no side is called '" + said(bench::side_key) + "'");
  }
  return {.work = **work,
          .side = static_cast<std::size_t>(side - (*work)->sides.begin()),
          .size = value_of(row, &RowSpec::size),
          .copies_each = !said(bench::transfers_key).empty(),
          .flushes = !said(bench::caches_key).empty()};
}

/// Adds all rows of that size which can run here.
void add_rows(const Work& work, std::int64_t size, const Options& options, bool optimized,
              bench::Devices& devices, bench::Rows& rows) {
  const double repetition = 2 * options.effort.min_time_seconds;  // with what is around it
  for (const Side& side : work.sides) {
    bench::Device* const device = devices.find(side.device.kind);
    if (device == nullptr || !side.device.missing.empty()) {
      continue;
    }
    for (const RowSpec& spec : rows_of_side(work, side, size, options.flushes)) {
      bench::Row row{.spec = spec,
                     .device = device,
                     .expected = {.all = repetition * (options.effort.repetitions + 1),
                                  .repetition = repetition}};
      if (!optimized) {
        row.warnings.emplace_back(
            "its program was compiled without optimization; set CMAKE_BUILD_TYPE=Release");
      }
      rows.add(std::move(row));
    }
  }
}

bench::RowServer::Find finder(const Works& works, bench::Devices& devices) {
  return [&](const std::string& /*name*/, const RowSpec& row) -> bench::RowServer::Source {
    return {
        .device = devices.find(value_of(row, &RowSpec::device)),
        .network = "",
        .make = [at = side_of(row, works)](bench::Result& result) { return make_row(at, result); }};
  };
}

// ---- The program as a worker, and as who plans.

/// Answers until nobody asks any more.
void serve(const Works& works, const Options& options, bench::Devices& devices) {
  const bench::Pipes pipes{.from = STDIN_FILENO, .to = dup(STDOUT_FILENO)};
  dup2(STDERR_FILENO, STDOUT_FILENO);  // whatever else prints
  initialize_benchmark(options.effort);
  bench::RowServer server(finder(works, devices),
                          [&](const std::string& doing) { bench::tell(pipes, doing); });
  bench::serve(pipes, [&](const Json& request) -> Json {
    if (request.at("do") != "describe") {
      return server.answer(request);
    }
    Json found = Json::object();
    for (const bench::Device* gpu : devices.gpus()) {
      found[gpu->name()] = gpu->facts;
    }
    return {{"devices", found}};
  });
}

/// The program is its user's: no commit of this project says what it computes.
Json context_of(const std::vector<std::string>& command, const Options& options,
                const bench::Devices& devices) {
  Json context = context_json(command, "functions", options.effort, devices);
  context["executable"] = bench::without_folders(command.front());
  Json& ours = context["crossover"];
  ours.erase("code_versions");
  ours["software"].update({{"commit", ""},
                           {"dirty", false},
                           {"program", bench::fingerprint_of_file("/proc/self/exe")}});
  return context;
}

int measure_rows(const std::vector<std::string>& command, const Works& works,
                 const Options& options, bool optimized, bench::Devices& devices,
                 bench::Spent& spent) {
  bench::Rows rows;
  for (const auto& work : works) {
    for (const std::int64_t size : work->sizes) {
      add_rows(*work, size, options, optimized, devices, rows);
    }
  }
  std::vector<bench::PlannedRow> plan;
  for (const std::string& name : bench::selected(rows.names(), options.filter)) {
    plan.push_back({.name = name, .pass = "Function", .seconds = rows[name].expected.all});
  }
  if (options.action == Action::list) {
    for (const bench::PlannedRow& row : plan) {
      std::cout << row.name << "\n";
    }
    return 0;
  }
  initialize_benchmark(options.effort);
  const std::unique_ptr<bench::WorkerProcess> child =
      options.in_process ? nullptr : bench::start_own_worker({command.begin() + 1, command.end()});
  const std::unique_ptr<bench::Worker> local =
      child ? nullptr : bench::local_worker(finder(works, devices));
  const std::vector<std::unique_ptr<bench::Peer>> no_peers;
  std::vector<std::string> remarks;
  if (const std::string why = devices.gpu_reason(); !why.empty() && !options.leaves_gpu) {
    remarks.push_back("no GPU rows: " + why);
  }
  bench::Session session{.options = options,
                         .devices = devices,
                         .rows = rows,
                         .worker = child ? static_cast<bench::Worker&>(*child) : *local,
                         .peers = no_peers,
                         .spent = spent,
                         .remarks = remarks,
                         .networks = {},
                         .ladders = {},
                         .context = [&] { return context_of(command, options, devices); },
                         .add_size =
                             [&](const std::string& size) {
                               for (const auto& work : works) {
                                 add_rows(*work, std::stoll(size), options, optimized, devices,
                                          rows);
                               }
                             }};
  const bool is_complete = bench::measure(session, std::move(plan));
  const int of_child = child ? child->close() : 0;
  return of_child != 0 ? of_child : is_complete ? 0 : bench::exit_row_failed;
}

int run(const std::vector<std::string>& command, const Works& works, bool optimized,
        bench::Spent& spent) {
  const Options options = options_in({command.begin() + 1, command.end()});
  if (options.action == Action::help) {
    std::cout << help_of_program(bench::speaker()) << std::flush;
    return 0;
  }
  require_sense(works, options.flushes && !options.leaves_gpu);
  bench::add_function_axes();
  bench::Devices devices = devices_of(works, options.leaves_gpu);
  if (options.action == Action::worker) {
    serve(works, options, devices);
    return 0;
  }
  return measure_rows(command, works, options, optimized, devices, spent);
}

}  // namespace

int measure_work(int argc, char** argv, Works works, bool optimized) {
  bench::settle();
  bench::Spent spent;
  return bench::exit_code_of([&] {
    const std::vector<std::string> command(argv, argv + argc);
    bench::speaker() = bench::without_folders(command.at(0));
    return run(command, works, optimized, spent);
  });
}

}  // namespace crossover::two
