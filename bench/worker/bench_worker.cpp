// SPDX-License-Identifier: Apache-2.0
#include "worker/bench_worker.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <utility>

#include "check/check.h"
#include "command_line/benchmark_flags.h"
#include "crossover/alive.h"
#include "rows/described_gpu.h"
#include "rows/families.h"
#include "run/refine/refine.h"
#include "worker/ranks.h"
#include "worker/row_server.h"

namespace crossover::bench {

void serve_rows(Arguments arguments, Ranks* ranks) {
  // Whatever else prints, prints to standard error.
  const Pipes pipes{.from = STDIN_FILENO, .to = dup(STDOUT_FILENO)};
  dup2(STDERR_FILENO, STDOUT_FILENO);
  BenchmarkFlags flags = take_benchmark_flags(arguments);
  Devices devices =
      find_devices(arguments.cuda == CudaUse::off ? CudaUse::off : CudaUse::automatic, ranks);
  if (ranks != nullptr) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // with the launcher
    if (ranks->rank() > 0) {
      follow_rows(*ranks, arguments, devices, pipes.to);
      return;
    }
  }
  const EndOfFollowing end(ranks);
  Rows rows;
  const auto register_rows = [&] {  // once they are asked for: who plans finds what is wrong first
    if (rows.names().empty()) {
      flags.initialize();
      rows = register_all(arguments, devices);
    }
  };
  // What takes long says again and again what it is at. Nothing of it is timed.
  std::string doing = "starting";
  AliveListener listener([&] { tell(pipes, doing); });
  const auto begin_with = [&](const std::string& what) {
    doing = what;
    tell(pipes, doing);
    listener.wait_anew();
  };
  RowServer server(
      [&](const std::string& name, const Configuration& configuration) -> Row& {
        register_rows();
        if (!rows.has(name)) {  // of a size that a refinement tries
          register_size(value_of(configuration, "model"), arguments, devices, rows);
        }
        return rows[name];
      },
      begin_with);
  std::vector<Check> checks;
  serve(pipes, [&](const Json& request) {
    if (request.at("do") == "check") {
      if (checks.empty()) {
        checks = all_checks(arguments, devices);
      }
      return run_check(checks, request.at("name"), begin_with);
    }
    return request.at("do") == "describe" ? description_json(devices) : server.answer(request);
  });
}

std::unique_ptr<WorkerProcess> start_bench_worker(const std::vector<std::string>& words) {
  std::vector<std::string> command{"/proc/self/exe"};
  command.insert(command.end(), words.begin(), words.end());
  command.emplace_back("--worker");
  return std::make_unique<WorkerProcess>(std::move(command));
}

Devices devices_in(WorkerProcess& child, double limit_seconds) {
  const Json request = {{"do", "describe"}};
  try {
    return described_devices(child.ask(request, limit_seconds));
  } catch (const WorkerEnded& error) {
    child.replace({"--cuda=off"});
    Devices devices = described_devices(child.ask(request));
    devices.gpu_reason = std::string("looking for one failed: ") + error.what();
    return devices;
  }
}

std::unique_ptr<Worker> local_bench_worker(Rows& rows) {
  const auto server = std::make_shared<RowServer>(
      [&rows](const std::string& name, const Configuration& /*configuration*/) -> Row& {
        return rows[name];
      });
  return std::make_unique<LocalWorker>(
      [server](const Json& request) { return server->answer(request); });
}

}  // namespace crossover::bench
