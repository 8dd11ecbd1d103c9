// SPDX-License-Identifier: Apache-2.0
#include "command_line/arguments.h"

#include <algorithm>
#include <limits>

#include "axes/axes.h"
#include "command_line/networks.h"

namespace crossover::bench {

DeviceUse use_of(const DeviceUses& uses, const BackendKind& kind) {
  const auto at = uses.find(kind.name);
  return at == uses.end() ? DeviceUse::automatic : at->second;
}

namespace {

/// How much is measured, and on which devices beside the CPU.
std::vector<Flag> sweep_flags(Arguments& to) {
  std::vector<std::pair<std::string, Sweep>> named_sweeps;
  for (const Sweep& sweep : sweeps()) {
    named_sweeps.emplace_back(sweep.name, sweep);
  }
  std::vector<Flag> flags{
      choice("--sweep", named_sweeps,
             "how much to measure: networks, repetitions, time per repetition (default: default); "
             "gpu: a few minutes, the most informative rows first",
             to.sweep)};
  for (const BackendKind& kind : other_backends()) {
    flags.push_back(choice(
        "--" + kind.name, named_device_uses,
        "use a " + kind.word + " if there is one (auto, the default), require one, or use none",
        to.uses[kind.name]));
  }
  return flags;
}

/// The flags that belong to no axis and to no network.
std::vector<Flag> run_flags(Arguments& to) {
  constexpr std::int64_t any = std::numeric_limits<std::int64_t>::max();
  constexpr double least_share = 0.01;
  constexpr double most_share = 0.9;
  return {
      {"--out", "FILE.json", "write the results to this file, which is valid after every row",
       into(to.out)},
      {"--budget", "TIME",
       "end after this time (90s, 5m, 1.5h), counted from the start of bench: first ceilings and "
       "networks with few repetitions, then the other rows of the sweep by their worth, then more "
       "repetitions of the noisiest rows",
       duration_into(to.budget_seconds)},
      {"--resume", "",
       "go on with the interrupted run whose rows are in --out=FILE.json: finished rows are kept, "
       "the others measured",
       set(to.resume, true)},
      choice(
          "--refine", contests_of_bench,
          "after the sweep, where one of two sides overtakes the other, measure networks between "
          "those sizes in pairs, for a minute at most: one thread against all (threads), CPU "
          "against GPU (device), eager against graphs (execution), bench against the other "
          "program (program), two commands (command); auto, the "
          "default: device or else threads, after a default or full sweep of all networks",
          to.refine),
      {"--peer", "COMMAND",
       "let another program measure the same work, in turn with these rows; given again, another "
       "one beside it; docs/protocol.md says how it is asked",
       behind(to.peers)},
      {"--peers-share", "SHARE",
       "how much of the run's time, or of its budget, rows of other programs take at most, as "
       "0.25: what answers comes first, and networks that do not fit have none, nor do those "
       "between the sizes (default: all, however long they take)",
       number_into(to.peers_share, least_share, most_share)},
      {"--when-answered", "COMMAND",
       "as soon as every second network of each ladder has five repetitions on each side, or after "
       "45 s, run this command by the shell, wait for it, and go on measuring; --out has its rows "
       "by then",
       into(to.when_answered)},
      {"--in-process", "",
       "measure in this process, for debuggers and profilers, instead of in a child",
       set(to.in_process, true)},
      {"--energy", "",
       "count energy, too: repetitions take 6 s at least, and the processors' and the GPU's meters "
       "are read around them (docs/method/bounds.md says what they need)",
       set(to.energy, true)},
      {"--meter", "COMMAND",
       "--energy by this command in place of the processors' meters: it prints the joules so far "
       "of the whole machine, as a wall meter counts them",
       into(to.meter)},
      {"--mixed", "",
       "of ranks that were started on several machines: allow different processors or numbers of "
       "cores; rows of several ranks then say so",
       set(to.mixed, true)},
      {"--patience", "TIME",
       "how long a row may make no progress before its process is killed and the row fails: this "
       "(default: 30s), or 10 times what it is expected to take if that is longer",
       duration_into(to.patience_seconds)},
      {"--memory-limit", "BYTES", "skip rows that need more memory (default: what is available)",
       number_into(to.memory_limit_bytes, std::int64_t{0}, any)},
      {"--planned-memory", "BYTES",
       "choose sizes that depend on memory (copies, triads) by so much (default: what the machine "
       "has, rounded down to a power of two; bench tells its child)",
       number_into(to.planned_memory_bytes, std::int64_t{1}, any)},
      {"--plan", "",
       "print the rows in the order they would be measured, with estimated seconds, and exit; "
       "with --budget, those that fit; with --cuda=on, those of a GPU even where there is none",
       set(to.action, Action::plan)},
      {"--check", "",
       "try every operation, copy, probe and tiny network in every way that the devices have, "
       "print what works, and exit: a minute at most, or --budget=TIME; --out=FILE keeps it as "
       "JSON",
       set(to.action, Action::check)},
      {"--context", "", "print what result files record beside their rows as JSON and exit",
       set(to.action, Action::context)},
      {"--models", "", "list the networks and exit", set(to.action, Action::models)},
      {"--describe", "", "print a network, named by --model, --mlp or --network, as JSON and exit",
       set(to.action, Action::describe)},
      {"--network-schema", "", "print the JSON Schema of files for --network and exit",
       set(to.action, Action::network_schema)},
      {"--cost", "",
       "print the operations, bytes and launches of training one network, or with "
       "--family=Forward of using it, as JSON and exit",
       set(to.action, Action::cost)},
      {"--machine", "", "print what result files record about this machine as JSON and exit",
       set(to.action, Action::machine)},
      {"--commit", "", "print the commit that bench was built from and exit",
       set(to.action, Action::commit)},
      {"--worker", "",
       "answer requests for rows on standard input, as docs/protocol.md says; bench's child does",
       set(to.action, Action::worker)},
      {"--version", "", "print the version and exit", set(to.action, Action::version)},
      {"--help", "", "print this text and exit", set(to.action, Action::help)},
  };
}

/// In the order of the help text.
std::vector<Flag> all_flags(Arguments& to, NetworkFlags& networks) {
  std::vector<Flag> all;
  for (std::vector<Flag>& part : std::vector{axis_flags(to.choices), network_flags(networks),
                                             sweep_flags(to), run_flags(to), benchmark_flags(to)}) {
    std::move(part.begin(), part.end(), std::back_inserter(all));
  }
  return all;
}

/// All, or of networks that someone names those that train, with the ceilings that bound them.
std::vector<RowFamily> families_for(bool named_networks) {
  std::vector<RowFamily> found;
  for (const BenchmarkFamily& family : families()) {
    const bool trains = family.trains == Trains::epochs || family.trains == Trains::steps;
    if (!named_networks || trains || family.bounds_others) {
      found.push_back(family.family);
    }
  }
  return found;
}

/// What follows from the choices, in the types that the families ask for.
void resolve_choices(Arguments& arguments, const NetworkFlags& networks) {
  const Choices& choices = arguments.choices;
  const bool are_named = choices.has(&RowSpec::model) || networks.bring_one();
  arguments.families = choices.has(&RowSpec::family)
                           ? choices.of(&RowSpec::family)
                           : families_for(are_named || arguments.sweep.networks_alone);
  if (are_named) {
    arguments.sweep.moved_models.clear();
  }
  arguments.precisions = choices.has(&RowSpec::precision) ? choices.of(&RowSpec::precision)
                                                          : arguments.sweep.precisions;
  arguments.batches = choices.of(&RowSpec::batch);
  arguments.threads = choices.of(&RowSpec::threads);
  arguments.ranks = choices.of(&RowSpec::ranks);
  arguments.buckets = choices.of(&RowSpec::bucket_bytes);
  arguments.accumulate = choices.of(&RowSpec::accumulate);
  arguments.copies = choices.of(&RowSpec::copies);
  if (arguments.copies != std::vector{RowSpec().copies}) {
    const auto require_plain = [&](auto member) {
      if (choices.of(member) != std::vector{RowSpec().*member}) {
        throw UsageError("--copies trains in one process, on rows as they lie; leave out " +
                         axis_of(member).flag.name);
      }
    };
    require_plain(&RowSpec::ranks);
    require_plain(&RowSpec::shuffle);
    require_plain(&RowSpec::loader);
  }
  arguments.loss_every_step = choices.of(&RowSpec::loss_every_step).front();
  arguments.cpu_modes = modes_on(AxisDevices::cpu, choices, arguments.sweep.cpu_modes);
  arguments.gpu_modes = modes_on(AxisDevices::gpu, choices, arguments.sweep.gpu_modes);
  arguments.forward_gpu_modes =
      modes_on(AxisDevices::gpu, choices, arguments.sweep.forward_gpu_modes).of_training;
}

}  // namespace

std::vector<std::int64_t> batches_of(const Arguments& arguments, std::int64_t own) {
  return arguments.batches.empty() ? std::vector{own} : arguments.batches;
}

std::optional<Task> find_task(const Arguments& arguments, const std::string& model, bool of_steps,
                              const std::vector<Family>& networks) {
  const auto named = [&](const std::vector<Task>& tasks) {
    return std::ranges::find_if(tasks, [&](const Task& task) { return task.model.name == model; });
  };
  const std::vector<Task>& first = of_steps ? arguments.minibatch_tasks : arguments.tasks;
  const std::vector<Task>& second = of_steps ? arguments.tasks : arguments.minibatch_tasks;
  for (const std::vector<Task>* tasks : {&first, &second}) {
    if (const auto at = named(*tasks); at != tasks->end()) {
      return *at;
    }
  }
  const std::string ladder = ladder_of(model, networks);
  const auto like = std::ranges::find_if(arguments.tasks, [&](const Task& task) {
    return !ladder.empty() && ladder_of(task.model.name, networks) == ladder;
  });
  if (like == arguments.tasks.end()) {
    return std::nullopt;
  }
  Task task = find_model(model, networks);
  task.rows = like->rows;
  task.optimizer = like->optimizer;
  return task;
}

Arguments parse(const std::vector<std::string>& arguments) {
  Arguments result;
  result.sweep = sweeps()[1];
  NetworkFlags networks;
  const std::vector<Flag> known = all_flags(result, networks);
  for (const std::string& argument : arguments) {
    take(argument, known);
  }
  if (result.resume && !result.out) {
    throw UsageError("--resume needs the file to go on with: --out=FILE.json");
  }
  if (!result.peers.empty() && !result.peers_share) {
    result.sweep = for_pairs(result.sweep);
  }
  Effort& effort = result.sweep.effort;
  effort = {.repetitions = result.repetitions.value_or(effort.repetitions),
            .min_time_seconds = result.min_time_seconds.value_or(effort.min_time_seconds)};
  result.energy = result.energy || !result.meter.empty();
  if (result.energy) {
    constexpr double long_enough = 6;  // for a meter, EnergyWatch::least_seconds
    if (result.min_time_seconds && *result.min_time_seconds < long_enough) {
      throw UsageError(
          "--energy needs repetitions of 6 s, as meters are slow; leave out --benchmark_min_time");
    }
    effort.min_time_seconds = std::max(effort.min_time_seconds, long_enough);
  }
  result.effort = effort;
  result.most_passes = result.sweep.most_passes;
  result.by_worth = result.sweep.by_worth;
  result.looks_between_sizes =
      result.sweep.refines && !result.choices.has(&RowSpec::model) && result.filter.empty();
  resolve_choices(result, networks);
  result.data = networks.data;
  if (result.action == Action::measure || result.action == Action::plan ||
      result.action == Action::context || result.action == Action::describe ||
      result.action == Action::cost || result.action == Action::worker ||
      (result.action == Action::models && networks.bring_one())) {
    const std::vector<std::string> named = result.choices.of(&RowSpec::model);
    const OwnNetworks own = own_networks(networks);
    result.tasks = tasks_for(networks, own.tasks, named, result.sweep.models);
    result.minibatch_tasks = tasks_for(networks, own.tasks, named, result.sweep.minibatch_models);
    // Of a sweep that has none by itself those that it trains.
    const Sweep& sweep = result.sweep;
    result.forward_tasks =
        tasks_for(networks, own.tasks, named,
                  sweep.forward_models.empty() && result.choices.has(&RowSpec::family)
                      ? sweep.models
                      : sweep.forward_models);
    result.ladders = own.ladders;
  }
  return result;
}

std::string help() {
  Arguments arguments;
  NetworkFlags networks;
  std::string text =
      "bench measures how long neural networks take to train on the CPU and on a GPU, and what\n"
      "limits them. It checks every row against a reference before it times it.\n\n"
      "  bench --sweep=quick --out=result.json\n"
      "  bench --mlp=784,512,10 --batch=64 --threads=1,2\n"
      "  bench --network=mynet.json --scale=0.5,1,2\n"
      "  bench --model=heart --data=heart.csv\n"
      "  bench --cost --mlp=784,512,10 --batch=64\n\n";
  const std::string first_of_google = benchmark_flags(arguments).front().name;
  for (const Flag& flag : all_flags(arguments, networks)) {
    if (flag.name == first_of_google) {
      text += "\nFlags of Google Benchmark's:\n\n";
    }
    text += help_of(flag);
  }
  return text + "\nExit code: 0 all rows measured, 1 a row failed or was skipped, 2 wrong usage.\n";
}

}  // namespace crossover::bench
