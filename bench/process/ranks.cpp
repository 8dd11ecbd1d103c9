// SPDX-License-Identifier: Apache-2.0
#include "process/ranks.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <thread>
#include <utility>

#include "base/say.h"
#include "crossover/machine.h"
#include "crossover/shared_training.h"
#include "families/families.h"
#include "file/context.h"
#include "rows/row.h"

namespace crossover::bench {
namespace {

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != 0;
}

/// This program's path: what mpirun would start as /proc/self/exe is mpirun.
std::string own_path() {
  std::array<char, PATH_MAX> path{};
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size());
  return {path.data(), static_cast<std::size_t>(std::max<ssize_t>(0, length))};
}

void require_launcher() {
  if (ranks_library().empty()) {
    throw UsageError(std::string("--ranks: ") + no_mpi);
  }
  if (std::system("command -v mpirun > /dev/null 2>&1") != 0) {
    throw UsageError(
        "--ranks: there is no mpirun in the PATH; install openmpi-bin, or that of your MPI");
  }
  const bool may_be_root =
      is_set("OMPI_ALLOW_RUN_AS_ROOT") && is_set("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM");
  if (geteuid() == 0 && !may_be_root && ranks_library().starts_with("Open MPI")) {
    throw UsageError(
        "--ranks: Open MPI's mpirun refuses to run as root; be another user, or, in a container, "
        "set OMPI_ALLOW_RUN_AS_ROOT=1 and OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1");
  }
}

/// Ends all ranks where one differs from rank 0 in what `own` says.
void require_alike(Ranks& ranks, const std::string& own, const std::string& otherwise) {
  if (const int rank = differing_rank(ranks, std::hash<std::string>()(own)); rank > 0) {
    say("rank " + std::to_string(rank) + " " + otherwise);
    ranks.abort();
  }
}

}  // namespace

Worker& RankWorkers::of(int ranks) {
  std::unique_ptr<WorkerProcess>& worker = workers_[ranks];
  if (!worker) {
    // A session of its own: Ctrl-C is for bench, which ends when the row is done.
    std::vector<std::string> command{"/bin/sh", "-c", "exec setsid mpirun \"$@\"",
                                     "mpirun",  "-n", std::to_string(ranks),
                                     own_path()};
    command.insert(command.end(), words_.begin(), words_.end());
    command.emplace_back("--worker");
    // Open MPI would give each rank one core, whatever its threads, and start no more than cores.
    worker = std::make_unique<WorkerProcess>(
        std::move(command),
        std::map<std::string, std::string>{{"OMPI_MCA_hwloc_base_binding_policy", "none"},
                                           {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
                                           {"OMPI_MCA_orte_execute_quiet", "1"}});
  }
  return *worker;
}

void RankWorkers::give_workers(Rows& rows, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const int ranks = rows[name].spec.ranks;
    if (ranks == 1 || rows[name].worker != nullptr) {
      continue;
    }
    if (workers_.empty()) {
      require_launcher();
    }
    rows[name].worker = &of(ranks);
  }
}

std::unique_ptr<Ranks> joined_ranks(const std::vector<std::string>& words, bool mixed) {
  if (launched_ranks() == 1) {
    return nullptr;
  }
  std::unique_ptr<Ranks> ranks;
  try {
    ranks = join_ranks();
  } catch (const std::runtime_error& error) {
    throw UsageError(error.what());
  }
  require_alike(*ranks, commit_line() + "\n" + join(words, "\n"),
                "is another build of bench, or has other flags, than rank 0; start all ranks with "
                "one command on one build");
  if (!mixed) {
    const Machine machine = this_machine();
    require_alike(
        *ranks, machine.cpu_model + " " + machine.simd + std::to_string(machine.threads),
        "has another processor, or other cores, than rank 0, and the slowest would decide "
        "on every time; start all ranks on nodes of one kind, or say --mixed");
  }
  return ranks;
}

void take_launched_ranks(const Ranks& ranks, Arguments& arguments) {
  if (arguments.choices.has(&RowSpec::ranks) && arguments.ranks != std::vector{ranks.size()}) {
    throw UsageError("--ranks: bench was started as " + std::to_string(ranks.size()) +
                     " ranks, so its rows have as many; leave the flag out, or start bench alone");
  }
  arguments.ranks = {ranks.size()};
  arguments.in_process = true;
}

void follow_rows(Ranks& ranks, const Arguments& arguments, Devices& devices, int answers_to) {
  try {
    RowContext context(arguments, devices);
    follow(ranks,
           [&](const std::string& row) { return followed(context, spec_in(Json::parse(row))); });
  } catch (const std::exception& error) {
    const std::string what = "rank " + std::to_string(ranks.rank()) + ": " + error.what();
    if (answers_to >= 0) {
      write_json(answers_to,
                 {{"outcome", "failed"}, {"error_message", what}, {"worker_ends", true}});
    } else {
      say(what);
    }
    constexpr std::chrono::milliseconds until_forwarded(300);
    std::this_thread::sleep_for(until_forwarded);
    ranks.abort();
  }
}

}  // namespace crossover::bench
