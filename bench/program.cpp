// SPDX-License-Identifier: Apache-2.0
#include "program.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <iterator>
#include <memory>
#include <set>
#include <thread>
#include <utility>

#include "axes/exit_code.h"
#include "base/say.h"
#include "base/start.h"
#include "base/times.h"
#include "build_info.h"
#include "check/check.h"
#include "command_line/arguments.h"
#include "crossover/dataset.h"
#include "crossover/network_file.h"
#include "families/device.h"
#include "families/families.h"
#include "families/networks.h"
#include "families/order.h"
#include "file/context.h"
#include "process/bench_worker.h"
#include "process/ranks.h"
#include "rows/row.h"
#include "run/peer.h"
#include "run/plan.h"
#include "run/session.h"
#include "worker/local_worker.h"

namespace crossover::bench {
namespace {

bool measures(const Arguments& arguments, const std::string& program) {
  const std::vector<std::string> wanted = arguments.choices.of(&RowSpec::program);
  return !arguments.choices.has(&RowSpec::program) || contains(wanted, program);
}

/// Of the plan those that --program asks for.
void keep_programs(std::vector<PlannedRow>& plan, const Arguments& arguments, Rows& rows) {
  std::erase_if(plan, [&](const PlannedRow& planned) {
    return !measures(arguments, rows[planned.name].spec.program);
  });
  if (plan.empty() && arguments.choices.has(&RowSpec::program)) {
    throw UsageError("--program=" + join(arguments.choices.of(&RowSpec::program), ",") +
                     ": none of them has a row; --peer starts another program");
  }
}

/// UsageError where flags can't go together.
void require_sense(const Arguments& arguments) {
  if (arguments.budget_seconds && arguments.shuffles) {
    throw UsageError(
        "--budget measures first what matters most, --benchmark_enable_random_interleaving in "
        "random order; drop one of them");
  }
  if (arguments.peers.empty() && arguments.peers_share) {
    throw UsageError("--peers-share is of the time of other programs; name one with --peer");
  }
  if (!arguments.peers.empty() && arguments.data) {
    throw UsageError("another program trains on generated data; leave out --data, or --peer");
  }
}

/// Each once, though networks may read the rows in different ways; in each way they are read once.
void say_doubts_about_data(const Arguments& arguments) {
  std::set<std::pair<std::int64_t, std::int64_t>> shapes;
  for (const Task& task : arguments.data ? arguments.tasks : std::vector<Task>{}) {
    shapes.emplace(task.model.sample[0], task.model.classes);
  }
  std::set<std::string> said;
  for (const auto& [features, classes] : shapes) {
    for (const std::string& doubt : doubts_about_csv(*arguments.data, {features, classes})) {
      if (said.insert(doubt).second) {
        say(doubt);
      }
    }
  }
}

/// UsageError where one that the command line demands is not there.
void require_devices(const DeviceUses& uses, Devices& devices) {
  for (const BackendKind& kind : other_backends()) {
    if (use_of(uses, kind) == DeviceUse::on && devices.find(kind.name) == nullptr) {
      throw UsageError("--" + kind.name + "=on, but there is no " + kind.word + ": " +
                       devices.missing[kind.name]);
    }
  }
}

/// On devices that may be used and are not here.
std::vector<std::string> remarks_on(const DeviceUses& uses, Devices& devices) {
  std::vector<std::string> remarks;
  for (const auto& [name, reason] : devices.missing) {
    const BackendKind& kind = backend_named(name);
    if (devices.find(name) == nullptr && use_of(uses, kind) != DeviceUse::off) {
      remarks.push_back("no " + kind.word + " rows: " + reason);
    }
  }
  return remarks;
}

/// UsageError where a variable makes another arithmetic of a GPU's f32.
void require_plain_f32(const Devices& devices) {
  for (char** entry = environ; *entry != nullptr && !devices.gpus().empty(); ++entry) {
    const std::string text = *entry;
    if (text.starts_with("NVIDIA_TF32_OVERRIDE=") || text.starts_with("CUBLAS_EMULAT")) {
      throw UsageError(text.substr(0, text.find('=')) +
                       " is set, and changes what f32 is on a GPU; unset it, or use --cuda=off");
    }
  }
}

/// `ranks`: that mpirun started this process as one of.
int measure(Arguments arguments, const std::vector<std::string>& command,
            const std::vector<std::string>& words, Spent& spent, Ranks* ranks) {
  const bool only_plans = arguments.action == Action::plan;
  if (ranks != nullptr) {
    take_launched_ranks(*ranks, arguments);
  }
  require_sense(arguments);
  const bool in_child =
      arguments.action == Action::measure && !arguments.in_process && !arguments.lists_only;
  const std::unique_ptr<WorkerProcess> child = in_child ? start_own_worker(words) : nullptr;
  constexpr double generous = 4;  // a driver may have to compile all kernels first
  Devices devices = child ? devices_in(*child, generous * arguments.patience_seconds)
                          : find_devices(arguments.uses, ranks);
  if (!only_plans) {
    require_devices(arguments.uses, devices);
  }
  require_plain_f32(devices);
  if (ranks != nullptr && ranks->rank() > 0) {
    follow_rows(*ranks, arguments, devices, /*answers_to=*/-1);
    return 0;
  }
  const EndOfFollowing end(ranks);
  std::vector<std::unique_ptr<Peer>> peers;
  for (const std::string& one : arguments.peers) {
    const Instant lent = std::chrono::steady_clock::now();
    peers.push_back(std::make_unique<Peer>(one, patience_with_peers * arguments.patience_seconds));
    spent.lent += seconds_since(lent);
  }
  const bool peer_has_gpu =
      std::ranges::any_of(peers, [](const std::unique_ptr<Peer>& one) { return one->has_gpu(); });
  for (const BackendKind& kind : other_backends()) {
    const DeviceUse use = use_of(arguments.uses, kind);
    const bool has_rows =  // in the plan, or of the other program
        (only_plans && use == DeviceUse::on) ||
        (peer_has_gpu && kind.has_own_memory && !measures(arguments, "bench"));
    if (has_rows && use != DeviceUse::off && devices.find(kind.name) == nullptr) {
      devices.all.push_back(planned_device(kind));
    }
  }
  Rows rows = register_all(arguments, devices);
  std::vector<PlannedRow> plan = ordered(rows, selected(rows.names(), arguments.filter),
                                         arguments.sweep, arguments.budget_seconds.has_value());
  const NetworkFacts networks = network_facts(arguments);
  add_peer_rows(peers, plan, networks, devices, rows);
  keep_programs(plan, arguments, rows);
  if (arguments.peers_share) {
    keep_share_of_peers(plan, rows, *arguments.peers_share, arguments.budget_seconds);
  }
  say_doubts_about_data(arguments);
  if (only_plans) {
    print(std::cout, plan, arguments.budget_seconds);
    return 0;
  }
  initialize_benchmark(arguments.sweep.effort, arguments.passed_on);
  if (arguments.action == Action::context) {
    std::cout << context_json(arguments, command, devices).dump(1) << std::endl;
    return 0;
  }
  if (arguments.lists_only) {
    for (const PlannedRow& row : plan) {
      std::cout << row.name << "\n";
    }
    return 0;
  }
  RankWorkers rank_workers(words);
  if (child) {
    rank_workers.give_workers(rows, names_of(plan));
  } else if (ranks == nullptr && arguments.ranks != std::vector{1}) {  // that nobody starts
    throw UsageError(
        "--ranks and --in-process: a process alone has one rank; start bench with mpirun -n N, or "
        "leave out --in-process");
  }
  RowContext context(arguments, devices);
  const std::unique_ptr<Worker> local =
      child ? nullptr
            : local_worker(row_finder(context), energy_watch_of(arguments.energy, arguments.meter));
  Session session{
      .options = arguments,
      .devices = devices,
      .rows = rows,
      .worker = child ? *child : *local,
      .peers = peers,
      .spent = spent,
      .remarks = remarks_on(arguments.uses, devices),
      .networks = networks,
      .ladders = ladders_of(),
      .context = [&] { return context_json(arguments, command, devices); },
      .add_size = [&](const std::string& model) { add_size(model, arguments, devices, rows); }};
  const bool is_complete = measure(session, std::move(plan));
  const int of_child = child ? child->close() : 0;
  return of_child != 0 ? of_child : is_complete ? 0 : exit_row_failed;
}

/// Whether all that was printed has arrived, or its reader went away, as `| head` does. Says so
/// where it has not.
bool is_written() {
  std::cout.flush();
  if (std::cout) {
    return true;
  }
  pollfd output{.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
  poll(&output, 1, 0);
  const bool has_reader = (output.revents & POLLERR) == 0;
  if (has_reader) {
    say("standard output can't be written; make room where it goes, or send it elsewhere");
  }
  return !has_reader;
}

int run(const std::vector<std::string>& command, Spent& spent) {
  std::vector<std::string> words = take_flags_from_environment();
  words.insert(words.end(), command.begin() + 1, command.end());
  Arguments arguments = parse(words);
  const bool computes = arguments.action == Action::measure || arguments.action == Action::worker;
  const std::unique_ptr<Ranks> ranks = computes ? joined_ranks(words, arguments.mixed) : nullptr;
  if (!arguments.planned_memory_bytes) {  // for the child, too
    arguments.planned_memory_bytes = planned_memory_bytes(arguments);
    words.push_back("--planned-memory=" + std::to_string(*arguments.planned_memory_bytes));
  }
  switch (arguments.action) {
    case Action::help:
      std::cout << help() << std::flush;
      return 0;
    case Action::machine:
      std::cout << machine_json(find_devices()).dump(1) << std::endl;
      return 0;
    case Action::commit:
      std::cout << commit_line() << std::endl;
      return 0;
    case Action::version:
      std::cout << "bench " << build::version << std::endl;
      return 0;
    case Action::models:
      for (const Task& task : arguments.tasks) {
        std::cout << task.model.name << "\n";
      }
      for (const Family& family : catalogue()) {
        for (const std::string& name : family.names) {
          std::cout << name << "\n";
        }
      }
      return 0;
    case Action::describe:
      if (arguments.tasks.size() != 1) {
        throw UsageError(
            "--describe prints one network: name it with --mlp=IN,...,CLASSES, --network=FILE.json "
            "or "
            "--model=NAME");
      }
      std::cout << crossover::describe(arguments.tasks.front()).dump(1) << std::endl;
      return 0;
    case Action::network_schema:
      std::cout << network_schema().dump(1) << std::endl;
      return 0;
    case Action::cost:
      std::cout << cost_json(arguments).dump(1) << std::endl;
      return 0;
    case Action::measure:
    case Action::plan:
    case Action::context:
      return measure(arguments, command, words, spent, ranks.get());
    case Action::check:
      check_machine(arguments, words);
      return 0;
    case Action::worker:
      serve_rows(arguments, ranks.get(), checking());
      return 0;
  }
  return exit_usage;
}

}  // namespace

int run_program(const std::vector<std::string>& command) {
  settle();
  Spent spent;
  return exit_code_of([&] {
    try {
      const int code = run(command, spent);
      return is_written() ? code : exit_row_failed;
    } catch (const UsageError&) {
      if (launched_rank() == 0) {
        throw;
      }
      // They find the same; mpirun ends all as soon as one ends, and the first must say why.
      std::this_thread::sleep_for(std::chrono::seconds(1));
      return exit_usage;
    }
  });
}

}  // namespace crossover::bench
