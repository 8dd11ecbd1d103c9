// SPDX-License-Identifier: Apache-2.0
#include "process/bench_worker.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <utility>

#include "command_line/arguments.h"
#include "crossover/alive.h"
#include "families/device.h"
#include "families/families.h"
#include "process/ranks.h"
#include "rows/watches.h"
#include "worker/local_worker.h"

namespace crossover::bench {

namespace {

/// Empty where there is no GPU, or its driver does not tell.
Json joules_json(const Devices& devices) {
  const std::optional<double> joules = devices.joules_of_gpu();
  return joules ? Json{{"joules", *joules}} : Json::object();
}

}  // namespace

void serve_rows(Arguments arguments, Ranks* ranks, const OtherRequests& others) {
  // Whatever else prints, prints to standard error.
  const Pipes pipes{.from = STDIN_FILENO, .to = dup(STDOUT_FILENO)};
  dup2(STDERR_FILENO, STDOUT_FILENO);
  Devices devices = find_devices(arguments.uses, ranks);
  if (ranks != nullptr) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // with the launcher
    if (ranks->rank() > 0) {
      follow_rows(*ranks, arguments, devices, pipes.to);
      return;
    }
  }
  const EndOfFollowing end(ranks);
  RowContext context(arguments, devices);
  // What takes long says again and again what it is at. Nothing of it is timed.
  std::string doing = "starting";
  AliveListener listener([&] { tell(pipes, doing); });
  const auto begin_with = [&](const std::string& what) {
    doing = what;
    tell(pipes, doing);
    listener.wait_anew();
  };
  bool is_initialized = false;
  RowServer server(
      [&, find = row_finder(context)](const std::string& name, const RowSpec& spec) {
        if (!std::exchange(is_initialized, true)) {  // who plans finds first what is wrong
          initialize_benchmark(arguments.sweep.effort, arguments.passed_on);
        }
        return find(name, spec);
      },
      begin_with, energy_watch_of(arguments.energy, arguments.meter));
  serve(pipes, [&](const Json& request) {
    if (const auto other = others(request, arguments, devices, begin_with)) {
      return *other;
    }
    if (request.at("do") == "describe") {
      return description_json(devices);
    }
    return request.at("do") == "joules" ? joules_json(devices) : server.answer(request);
  });
}

Devices devices_in(WorkerProcess& child, double limit_seconds) {
  const Json request = {{"do", "describe"}};
  try {
    return described_devices(child.ask(request, limit_seconds));
  } catch (const WorkerEnded& error) {
    std::vector<std::string> words;
    for (const BackendKind& kind : other_backends()) {
      words.push_back("--" + kind.name + "=off");
    }
    child.replace(words);
    Devices devices = described_devices(child.ask(request, limit_seconds));
    for (auto& [kind, reason] : devices.missing) {
      reason = std::string("looking for one failed: ") + error.what();
    }
    return devices;
  }
}

RowServer::Find row_finder(RowContext& context) {
  return [&context](const std::string& /*name*/, const RowSpec& row) -> RowServer::Source {
    return {.device = &device_of(row, context.devices),
            .network = context.network_of(row),
            .make = [&context, row](Result& result) { return make_row(context, row, result); }};
  };
}

}  // namespace crossover::bench
