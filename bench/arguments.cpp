// SPDX-License-Identifier: Apache-2.0
#include "arguments.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <sstream>

#include "families.h"

namespace crossover::bench {
namespace {

std::vector<std::string> every_disc() { return disc_family().names; }

constexpr std::array all_executions{Execution::eager, Execution::graph, Execution::graph_epoch};
constexpr std::array all_placements{Placement::resident, Placement::pageable, Placement::pinned,
                                    Placement::pinned_async};
constexpr std::array all_product_choices{ProductChoice::heuristic, ProductChoice::autotuned};
constexpr std::array all_precisions{Precision::f32, Precision::tf32, Precision::bf16,
                                    Precision::f16};

/// A whole epoch is one graph only where nothing is copied or read between its steps.
bool makes_sense(const GpuMode& mode, bool loss_every_step) {
  return mode.execution != Execution::graph_epoch ||
         (mode.placement == Placement::resident && !loss_every_step);
}

template <class Executions, class Placements>
std::vector<GpuMode> every_mode(const Executions& executions, const Placements& placements) {
  std::vector<GpuMode> modes;
  for (const Execution execution : executions) {
    for (const Placement placement : placements) {
      modes.push_back({execution, placement});
    }
  }
  return modes;
}

std::vector<Sweep> sweeps() {
  std::vector<std::string> standard = every_disc();
  standard.emplace_back("heart");
  std::vector<std::string> all = standard;
  for (const std::string& name : fcn_family().names) {
    all.push_back(name);
  }
  const std::vector<GpuMode> few = {{Execution::eager, Placement::resident},
                                    {Execution::graph, Placement::resident},
                                    {Execution::eager, Placement::pinned_async}};
  const std::vector<GpuMode> every = every_mode(all_executions, all_placements);
  return {
      {"quick",
       {"disc-2", "disc-4", "disc-6", "disc-8", "disc-9", "disc-10", "heart"},
       few,
       5,
       0.02},
      {"default", standard, every, 9, 0.1},
      {"full", all, every, 15, 0.3},
      {"gpu",
       standard,
       every,
       5,
       0.03,
       {all_precisions.begin(), all_precisions.end()},
       /*by_worth=*/true},
  };
}

template <class Number>
std::vector<Number> numbers(const std::string& flag, const std::string& text, Number least,
                            Number most) {
  std::vector<Number> values;
  for (const std::string& part : split(text)) {
    values.push_back(parse_number(flag, part, least, most));
  }
  return values;
}

constexpr std::int64_t largest_size = std::int64_t{1} << 40U;
constexpr int most_threads = 4096;

enum class LossReading { epoch, step };

using bench::to_string;  // beside those of this file alone
std::string to_string(CudaUse use) {
  return use == CudaUse::automatic ? "auto" : use == CudaUse::on ? "on" : "off";
}
std::string to_string(LossReading reading) {
  return reading == LossReading::epoch ? "epoch" : "step";
}
std::string to_string(const Sweep& sweep) { return sweep.name; }
std::string to_string(const BenchmarkFamily& family) { return family.name; }

constexpr std::array all_cuda_uses{CudaUse::automatic, CudaUse::on, CudaUse::off};
constexpr std::array all_loss_readings{LossReading::epoch, LossReading::step};

/// "eager, graph, graph-epoch"
template <class Values>
std::string names_of(const Values& values, const char* separator = ", ") {
  std::string names;
  for (const auto& value : values) {
    names += (names.empty() ? "" : separator) + to_string(value);
  }
  return names;
}

/// The value of that name, which is all of `text` or a part of it.
template <class Values>
auto choice(const std::string& flag, const std::string& text, const std::string& name,
            const Values& known) {
  const auto at = std::find_if(known.begin(), known.end(),
                               [&](const auto& value) { return to_string(value) == name; });
  if (at == known.end()) {
    throw UsageError(flag + "=" + text + ": '" + name + "' is none of " + names_of(known));
  }
  return *at;
}

/// The values whose names stand in a list: --execution=eager,graph.
template <class Values>
auto choices(const std::string& flag, const std::string& text, const Values& known) {
  std::vector<typename Values::value_type> chosen;
  for (const std::string& name : split(text)) {
    chosen.push_back(choice(flag, text, name, known));
  }
  return chosen;
}

/// What the flags ask to change in the networks, before they are put together.
struct Changes {
  std::vector<Placement> placements;
  std::vector<std::string> models;
  std::optional<std::vector<std::int64_t>> mlp;
  std::optional<std::string> activation, optimizer;
  std::optional<double> learning_rate, weight_decay;
  std::optional<std::int64_t> rows;
};

Task custom_mlp(const Changes& changes) {
  const std::vector<std::int64_t>& widths = *changes.mlp;
  std::string name = "mlp";
  for (const std::int64_t width : widths) {
    name.append("-").append(std::to_string(width));
  }
  const std::string activation = changes.activation.value_or("relu");
  if (activation != "relu" && activation != "sigmoid") {
    throw UsageError("--activation=" + activation + ": relu or sigmoid is needed");
  }
  if (activation == "sigmoid") {
    name += "-sigmoid";
  }
  try {
    return {
        .model = mlp(name, widths, activation == "relu" ? Activation::relu : Activation::sigmoid),
        .rows = 1000,
        .batch = 100,
        .optimizer = SgdOptions{},
        .generate = [widths](std::int64_t rows) {
          return uniform_rows({widths.front()}, rows, widths.back());
        }};
  } catch (const std::invalid_argument& error) {
    throw UsageError(std::string("--mlp: ") + error.what());
  }
}

void change_optimizer(Task& task, const Changes& changes) {
  if (changes.optimizer == "sgd" && !std::holds_alternative<SgdOptions>(task.optimizer)) {
    task.optimizer = SgdOptions{};
  } else if (changes.optimizer == "adamw" &&
             !std::holds_alternative<AdamWOptions>(task.optimizer)) {
    task.optimizer = AdamWOptions{};
  } else if (changes.optimizer && changes.optimizer != "sgd" && changes.optimizer != "adamw") {
    throw UsageError("--optimizer=" + *changes.optimizer + ": sgd or adamw is needed");
  }
  if (changes.learning_rate) {
    std::visit([&](auto& o) { o.learning_rate = *changes.learning_rate; }, task.optimizer);
  }
  if (changes.weight_decay) {
    auto* adamw = std::get_if<AdamWOptions>(&task.optimizer);
    if (adamw == nullptr) {
      throw UsageError("--weight-decay is AdamW's, and " + task.model.name +
                       " trains with SGD; add --optimizer=adamw");
    }
    adamw->weight_decay = *changes.weight_decay;
  }
}

std::vector<Task> tasks_for(const Arguments& arguments, const Changes& changes) {
  std::vector<Task> tasks;
  if (changes.mlp) {
    tasks.push_back(custom_mlp(changes));
  } else if (changes.activation) {
    throw UsageError("--activation describes your own network; give its widths with --mlp=");
  }
  if (arguments.data && changes.rows) {
    throw UsageError("--rows is for generated data; --data brings its own rows");
  }
  std::vector<std::string> names = changes.models;
  if (names.empty() && !changes.mlp) {
    if (arguments.data) {
      throw UsageError(
          "--data needs to know the network that reads it; add --model=heart, say, or --mlp=");
    }
    names = arguments.sweep.models;
  }
  for (const std::string& name : names) {
    try {
      tasks.push_back(find_model(name));
    } catch (const std::invalid_argument& error) {
      throw UsageError(std::string("--model: ") + error.what());
    }
  }
  for (Task& task : tasks) {
    change_optimizer(task, changes);
    task.rows = changes.rows.value_or(task.rows);
  }
  return tasks;
}

/// The sweep's modes, or those of the flags; without those that come to the same as another.
std::vector<GpuMode> gpu_modes(const Arguments& arguments, const Changes& changes) {
  std::vector<GpuMode> modes = arguments.sweep.gpu_modes;
  if (!arguments.executions.empty() || !changes.placements.empty()) {
    const std::vector<Execution> eager{Execution::eager};
    const std::vector<Placement> resident{Placement::resident};
    modes = every_mode(arguments.executions.empty() ? eager : arguments.executions,
                       changes.placements.empty() ? resident : changes.placements);
  }
  std::erase_if(modes,
                [&](const GpuMode& mode) { return !makes_sense(mode, arguments.loss_every_step); });
  if (modes.empty()) {
    throw UsageError(
        "--execution=graph-epoch needs --placement=resident and --loss=epoch: nothing may be "
        "copied or read between the steps of one graph");
  }
  return modes;
}

struct Flag {
  std::string
      value;  ///< what stands behind '=', as the help text names it; empty: the flag has none
  std::string help;
  std::function<void(const std::string& value)> take;
};

using Flags = std::vector<std::pair<std::string, Flag>>;

Flags flags(Arguments& to, Changes& changes) {
  return {
      {"--sweep",
       {names_of(sweeps(), "|"),
        "how much is measured: models, repetitions, time for each (default: default); gpu: most "
        "of it in few minutes, what is worth most first",
        [&to](const std::string& text) { to.sweep = choice("--sweep", text, text, sweeps()); }}},
      {"--model",
       {"NAME,...", "these networks instead of the sweep's; --models lists them",
        [&changes](const std::string& text) { changes.models = split(text); }}},
      {"--mlp",
       {"IN,...,CLASSES", "your own fully connected network, by its widths: --mlp=784,512,10",
        [&changes](const std::string& text) {
          changes.mlp = numbers<std::int64_t>("--mlp", text, 1, largest_size);
        }}},
      {"--activation",
       {"relu|sigmoid", "between the layers of --mlp (default: relu)",
        [&changes](const std::string& text) { changes.activation = text; }}},
      {"--optimizer",
       {"sgd|adamw", "instead of the network's own (--mlp: sgd)",
        [&changes](const std::string& text) { changes.optimizer = text; }}},
      {"--lr",
       {"RATE", "learning rate instead of the network's own",
        [&changes](const std::string& text) {
          changes.learning_rate = parse_number<double>("--lr", text, 0, 1e30);
        }}},
      {"--weight-decay",
       {"RATE", "AdamW's, on weights but not on biases (default: 1e-4)",
        [&changes](const std::string& text) {
          changes.weight_decay = parse_number<double>("--weight-decay", text, 0, 1e30);
        }}},
      {"--batch",
       {"N,...", "batch sizes (default: the network's own; larger than the rows: one short batch)",
        [&to](const std::string& text) {
          to.batches = numbers<std::int64_t>("--batch", text, 1, largest_size);
        }}},
      {"--accumulate",
       {"K", "update once for every K batches, with the sum of their gradients (default: 1)",
        [&to](const std::string& text) {
          to.accumulate = parse_number<std::int64_t>("--accumulate", text, 1, largest_size);
        }}},
      {"--rows",
       {"N", "rows of generated data instead of the network's own number",
        [&changes](const std::string& text) {
          changes.rows = parse_number<std::int64_t>("--rows", text, 1, largest_size);
        }}},
      {"--data",
       {"FILE.csv",
        "train on these rows: numbers, the last column the class from 0; header optional",
        [&to](const std::string& text) { to.data = text; }}},
      {"--family",
       {"NAME,...", "these families of benchmarks (default: all): " + names_of(families()),
        [&to](const std::string& text) {
          to.families.clear();
          for (const BenchmarkFamily& family : choices("--family", text, families())) {
            to.families.push_back(family.name);
          }
        }}},
      {"--cuda",
       {"auto|on|off", "measure on a GPU: where there is one (default), necessarily, or not at all",
        [&to](const std::string& text) { to.cuda = choice("--cuda", text, text, all_cuda_uses); }}},
      {"--precision",
       {"NAME,...",
        "f32, tf32, bf16 or f16 (default: f32, with TF32 off; of --sweep=gpu some rows in each)",
        [&to](const std::string& text) {
          to.precisions = choices("--precision", text, all_precisions);
        }}},
      {"--execution",
       {"NAME,...", "on a GPU: eager, graph (each step) or graph-epoch (default: the sweep's)",
        [&to](const std::string& text) {
          to.executions = choices("--execution", text, all_executions);
        }}},
      {"--placement",
       {"NAME,...",
        "of the data of a GPU: resident, pageable, pinned or pinned-async (default: the sweep's)",
        [&changes](const std::string& text) {
          changes.placements = choices("--placement", text, all_placements);
        }}},
      {"--products",
       {"NAME,...",
        "a GPU's algorithm for each product: heuristic (default), or autotuned, the fastest of a "
        "few",
        [&to](const std::string& text) {
          to.products = choices("--products", text, all_product_choices);
        }}},
      {"--loss",
       {"epoch|step", "when a GPU's losses are waited for (default: epoch)",
        [&to](const std::string& text) {
          to.loss_every_step = choice("--loss", text, text, all_loss_readings) == LossReading::step;
        }}},
      {"--threads",
       {"N,...",
        "CPU threads (default: 1, 2, 4 ... up to the cores; of --sweep=gpu 1 and all cores)",
        [&to](const std::string& text) {
          to.threads = numbers<int>("--threads", text, 1, most_threads);
        }}},
      {"--out",
       {"FILE.json", "write the results here, complete after every row (also: --benchmark_out)",
        [&to](const std::string& text) { to.out = text; }}},
      {"--memory-limit",
       {"BYTES", "skip rows that need more (default: what the machine has available)",
        [&to](const std::string& text) {
          to.memory_limit_bytes = parse_number<std::int64_t>(
              "--memory-limit", text, 0, std::numeric_limits<std::int64_t>::max());
        }}},
      {"--plan",
       {"",
        "print the rows in the order of measurement, with the seconds that each may take, and "
        "exit; rows of a GPU also where there is none",
        [&to](const std::string&) { to.action = Action::plan; }}},
      {"--models",
       {"", "list the networks and exit",
        [&to](const std::string&) { to.action = Action::models; }}},
      {"--cost",
       {"",
        "count what one network's training costs, print it as JSON and exit; nothing is measured",
        [&to](const std::string&) { to.action = Action::cost; }}},
      {"--machine",
       {"", "print this machine's record as JSON and exit",
        [&to](const std::string&) { to.action = Action::machine; }}},
      {"--commit",
       {"", "print the commit that was built and exit",
        [&to](const std::string&) { to.action = Action::commit; }}},
      {"--help", {"", "this text", [&to](const std::string&) { to.action = Action::help; }}},
  };
}

/// The flag most like a mistyped one, by the number of edits (Levenshtein); empty where none is
/// near.
std::string nearest(const std::string& typed, const Flags& known) {
  std::string best;
  std::size_t fewest = 3;
  for (const auto& [name, flag] : known) {
    std::vector<std::size_t> row(name.size() + 1);
    for (std::size_t j = 0; j <= name.size(); ++j) {
      row[j] = j;
    }
    for (std::size_t i = 1; i <= typed.size(); ++i) {
      std::size_t diagonal = row[0];
      row[0] = i;
      for (std::size_t j = 1; j <= name.size(); ++j) {
        const std::size_t above = row[j];
        row[j] = std::min(
            {row[j] + 1, row[j - 1] + 1, diagonal + (typed[i - 1] == name[j - 1] ? 0 : 1)});
        diagonal = above;
      }
    }
    if (row.back() < fewest) {
      fewest = row.back();
      best = name;
    }
  }
  return best;
}

}  // namespace

std::vector<GpuMode> every_gpu_mode(bool loss_every_step) {
  std::vector<GpuMode> modes = every_mode(all_executions, all_placements);
  std::erase_if(modes, [&](const GpuMode& mode) { return !makes_sense(mode, loss_every_step); });
  return modes;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t start = 0;;) {
    const std::size_t comma = text.find(',', start);
    parts.push_back(text.substr(start, comma - start));
    if (comma == std::string::npos) {
      return parts;
    }
    start = comma + 1;
  }
}

std::string to_string(Execution execution) {
  switch (execution) {
    case Execution::eager:
      return "eager";
    case Execution::graph:
      return "graph";
    case Execution::graph_epoch:
      return "graph-epoch";
  }
  return "";
}

std::string to_string(Placement placement) {
  switch (placement) {
    case Placement::resident:
      return "resident";
    case Placement::pageable:
      return "pageable";
    case Placement::pinned:
      return "pinned";
    case Placement::pinned_async:
      return "pinned-async";
  }
  return "";
}

std::string to_string(ProductChoice products) {
  return products == ProductChoice::heuristic ? "heuristic" : "autotuned";
}

template <class Number>
Number parse_number(const std::string& flag, const std::string& text, Number least, Number most) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() ||
      !(value >= least && value <= most)) {
    std::ostringstream message;
    message << flag << ": '" << text << "' is no " << (std::is_integral_v<Number> ? "whole " : "")
            << "number from " << least << " to " << most;
    throw UsageError(message.str());
  }
  return value;
}

template int parse_number(const std::string&, const std::string&, int, int);
template std::int64_t parse_number(const std::string&, const std::string&, std::int64_t,
                                   std::int64_t);
template double parse_number(const std::string&, const std::string&, double, double);

Arguments parse(const std::vector<std::string>& arguments) {
  Arguments result{.sweep = sweeps()[1]};
  Changes changes;
  const Flags known = flags(result, changes);
  for (const std::string& argument : arguments) {
    const std::size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    const bool has_value = equals != std::string::npos;
    const std::string value = has_value ? argument.substr(equals + 1) : "";
    if (name == "--benchmark_out" && !value.empty()) {
      result.out = value;
      continue;
    }
    if (name == "--benchmark_out_format" || name == "--benchmark_out") {
      if (value == "json") {
        continue;
      }
      throw UsageError(argument + ": result files are JSON, and --out=FILE.json names one");
    }
    if (name.starts_with("--benchmark_") || name == "--v") {
      result.passed_on.push_back(argument);
      continue;
    }
    const auto flag = std::find_if(known.begin(), known.end(),
                                   [&](const auto& other) { return other.first == name; });
    if (flag == known.end()) {
      const std::string meant = nearest(name, known);
      throw UsageError("unknown argument '" + argument + "'" +
                       (meant.empty() ? "; --help lists all" : "; did you mean " + meant + "?"));
    }
    if (flag->second.value.empty() == has_value || (has_value && value.empty())) {
      throw UsageError(has_value && flag->second.value.empty()
                           ? name + " takes no value"
                           : name + " needs a value: " + name + "=" + flag->second.value);
    }
    flag->second.take(value);
  }
  if (result.families.empty()) {
    for (const BenchmarkFamily& family : families()) {
      result.families.push_back(family.name);
    }
  }
  if (result.precisions.empty()) {
    result.precisions = result.sweep.precisions;
  }
  result.gpu_modes = gpu_modes(result, changes);
  if (result.action == Action::measure || result.action == Action::plan ||
      result.action == Action::cost) {
    result.tasks = tasks_for(result, changes);
  }
  return result;
}

std::string help() {
  Arguments arguments;
  Changes changes;
  std::string text =
      "bench trains networks and measures the seconds of an epoch, each row verified first.\n\n"
      "  bench --sweep=quick --out=result.json\n"
      "  bench --mlp=784,512,10 --batch=64 --threads=1,2\n"
      "  bench --model=heart --data=heart.csv\n"
      "  bench --cost --mlp=784,512,10 --batch=64\n\n";
  for (const auto& [name, flag] : flags(arguments, changes)) {
    std::string left = "  " + name + (flag.value.empty() ? "" : "=" + flag.value);
    constexpr std::size_t column = 31;
    left += left.size() < column ? std::string(column - left.size(), ' ')
                                 : "\n" + std::string(column, ' ');
    text += left + flag.help + "\n";
  }
  return text +
         "\nExit code: 0; 1 where a row failed or was skipped; 2 for a command line that can't be "
         "carried "
         "out.\nGoogle Benchmark's flags work as well:\n\n";
}

}  // namespace crossover::bench
