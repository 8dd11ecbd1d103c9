// SPDX-License-Identifier: Apache-2.0
#include "command_line/axes.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <map>
#include <stdexcept>
#include <system_error>

#include "command_line/flag.h"
#include "crossover/executions.h"
#include "crossover/names.h"
#include "crossover/training.h"

namespace crossover::bench {
namespace {

/// By their names, plainest first.
template <class Value>
using Named = std::vector<std::pair<std::string, Value>>;

/// An axis that is a member of CompileOptions.
template <class Value>
Axis option(Axis axis, Value CompileOptions::*member, const Named<Value>& values) {
  axis.values = all_names(values);
  axis.apply = [member, values](CompileOptions& options, const std::string& name) {
    options.*member = value_in(values, name).value();
  };
  return axis;
}

std::vector<std::string> family_names() {
  std::vector<std::string> names;
  std::ranges::transform(families(), std::back_inserter(names), &BenchmarkFamily::name);
  return names;
}

Named<Execution> execution_names() {
  Named<Execution> names;
  for (const ExecutionFacts& one : execution_table) {
    names.emplace_back(one.name, one.execution);
  }
  return names;
}

Named<Precision> precision_names() {
  Named<Precision> names;
  for (const Precision one : {Precision::f32, Precision::tf32, Precision::bf16, Precision::f16}) {
    names.emplace_back(to_string(one), one);
  }
  return names;
}

/// Of those that not all programs have.
std::map<std::string, ValueScope> execution_scopes() {
  std::map<std::string, ValueScope> scopes;
  for (const ExecutionFacts& one : execution_table) {
    const AxisDevices devices = one.on_cpu && one.on_gpu ? AxisDevices::both
                                : one.on_cpu             ? AxisDevices::cpu
                                                         : AxisDevices::gpu;
    if (devices != AxisDevices::both || one.trains) {
      scopes[std::string(one.name)] = {devices, one.trains};
    }
  }
  return scopes;
}

constexpr int most_threads = 4096;
constexpr int most_ranks = 4096;
constexpr int most_copies = 4096;

// ---- what is computed

std::vector<Axis> computation_axes() {
  return {
      {.key = "family",
       .description = "kind of benchmark",
       .values = family_names(),
       .flag = {"--family", "NAME,...",
                "measure only these families: " + join(family_names()) +
                    " (default: all; of networks named by --mlp or --model those that train, and "
                    "the ceilings; Forward by itself: --family=Forward)"}},
      {.key = "quantity", .description = "which ceiling of the device is measured"},
      {.key = "direction",
       .description = "source and destination of a copy: host (h) or device (d)",
       .values = {"h2h", "h2d", "d2h", "both", "d2d"}},
      {.key = "op",
       .description = "what the ranks compute together: the sum of their values, on each",
       .values = {"allreduce"}},
      {.key = "bytes", .description = "bytes copied, or that each rank has of what is summed"},
      {.key = "model",
       .description = "network",
       .flag =
           {"--model", "NAME,...",
            "measure these networks instead of the sweep's; --models lists them, and disc-8x1.5 "
            "is disc-8 with its hidden widths times 1.5"}},
      {.key = "m", .description = "rows of the result"},
      {.key = "n", .description = "columns of the result"},
      {.key = "k", .description = "inner dimension of the product"},
      {.key = "transpose",
       .description = "which factors are transposed (t) and which are not (n)",
       .values = {"nn", "nt", "tn", "tt"}},
      {.key = "width", .description = "input and output features of the layer"},
      {.key = "batch",
       .description = "samples per training step, or per forward pass",
       .flag = {"--batch", "N,...",
                "batch sizes (default: the network's own, of forward passes 1, 32 and 1024); a "
                "larger one than the data has rows is all its rows",
                largest_size}},
      {.key = "activation",
       .description = "function after the layer",
       .values = {"relu", "sigmoid"}},
      {.key = "pass",
       .description = "forward (values) or backward (gradients)",
       .values = {"forward", "backward"}},
      {.key = "form",
       .description = "layer and activation as two operations (separate) or as one (fused)",
       .values = {"separate", "fused"}},
      option<Precision>(
          {.key = "precision",
           .role = AxisRole::alike,
           .description = "arithmetic of the matrix products and type of their operands",
           .flag = {"--precision", "NAME,...",
                    "f32, tf32, bf16 or f16 (default: f32, with TF32 off)"}},
          &CompileOptions::precision, precision_names()),
      {.key = "size",
       .description = "rows and columns of a product's square matrices, or the {n} of a command"},
      {.key = "cache",
       .description = "operands in the cache (warm) or in memory (cold)",
       .values = {"warm", "cold"}},
      {.key = "accumulate",
       .description = "batches whose gradients are summed for one update",
       .unsaid = "1",
       .flag = {"--accumulate", "K,...",
                "in an epoch, update the parameters once every K batches, with summed gradients "
                "(default: 1)",
                largest_size}},
      {.key = "copies",
       .description =
           "networks that train at once on the same rows, each with parameters of its own",
       .unsaid = "1",
       .flag = {"--copies", "K,...",
                "in an epoch, train K copies of the network at once on the same rows, each from "
                "other parameters: on the CPU each thread trains some of them, on a GPU one launch "
                "is for all, or each has a stream (default: 1)",
                most_copies}},
      {.key = "shuffle",
       .description =
           "order in which an epoch reads the rows: as they lie (none), or another one in "
           "each epoch (epoch)",
       .values = {"none", "epoch"},
       .unsaid = "none",
       .flag = {"--shuffle", "NAME,...",
                "in an epoch, read the rows as they lie (none, default) or in another order each "
                "time (epoch; on the CPU)"}},
      option<bool>(
          {.key = "loss",
           .role = AxisRole::alike,
           .description =
               "when the host waits for the GPU's losses: after each epoch or after each step",
           .unsaid = "epoch",
           .flag = {"--loss", "epoch|step",
                    "when the host waits for the GPU's losses (default: epoch)"}},
          &CompileOptions::loss_every_step, {{"epoch", false}, {"step", true}}),
  };
}

// ---- how, and where

std::vector<Axis> device_axes() {
  return {
      {.key = "program",
       .role = AxisRole::how,
       .description = "what computes: bench, or a program that takes turns with it",
       .unsaid = "bench",
       .flag = {"--program", "NAME,...",
                "of bench and the programs of --peer, measure only these rows (default: all)"}},
      {.key = "step_count", .role = AxisRole::how, .description = "the {steps} of a command"},
      {.key = "device",
       .role = AxisRole::how,
       .description = "device that computes",
       .values = {"cpu", "cuda"}},
      option<Execution>(
          {.key = "execution",
           .role = AxisRole::how,
           .description = "operation by operation (eager), on several ranks with sums of "
                          "gradients beside the backward pass (overlapped); on the CPU with "
                          "Winograd's products in convolutions of 3x3 (winograd), or a step "
                          "without calls between (fused); on a GPU one CUDA graph per step, one "
                          "per epoch, or one kernel "
                          "for the epoch (persistent); or the fastest of the device's (auto)",
           .flag =
               {"--execution", "NAME,...",
                "eager, and with --ranks overlapped; on the CPU also winograd (networks with "
                "convolutions of 3x3) or fused (of linear layers); on a GPU also graph (one "
                "per step), graph-epoch or persistent; or auto, the fastest of the device's, on "
                "the CPU with at most the "
                "threads of the row, on a GPU with the fastest choices of algorithms. Each "
                "device measures those that it has (default, also where it has none of them: "
                "the sweep's)"},
           .devices = AxisDevices::both,
           .scopes = execution_scopes()},
          &CompileOptions::execution, execution_names()),
      {.key = "memory",
       .role = AxisRole::how,
       .description = "kind of host memory",
       .values = {"pageable", "pinned"}},
      {.key = "mode",
       .role = AxisRole::how,
       .description = "whether the host waits for each copy (sync)",
       .values = {"sync", "async"}},
      option<Placement>({.key = "data",
                         .role = AxisRole::how,
                         .description = "where the data set is kept while a GPU trains",
                         .flag = {"--placement", "NAME,...",
                                  "where a GPU's training data is kept: resident, pageable, pinned "
                                  "or pinned-async (default: the sweep's)"},
                         .devices = AxisDevices::gpu,
                         .training_only = true},
                        &CompileOptions::placement,
                        {{"resident", Placement::resident},
                         {"pageable", Placement::pageable},
                         {"pinned", Placement::pinned},
                         {"pinned-async", Placement::pinned_async}}),
      option<ProductChoice>(
          {.key = "products",
           .role = AxisRole::how,
           .description = "how a GPU's matrix products choose their algorithm",
           .unsaid = "heuristic",
           .flag = {"--products", "NAME,...",
                    "how a GPU's matrix products choose their algorithm: by cuBLASLt's "
                    "heuristic (default), or autotuned: the fastest of a few"},
           .devices = AxisDevices::gpu},
          &CompileOptions::products,
          {{"heuristic", ProductChoice::heuristic}, {"autotuned", ProductChoice::autotuned}}),
      option<ConvolutionChoice>(
          {.key = "cudnn",
           .role = AxisRole::how,
           .description = "how a GPU's convolutions choose their algorithm",
           .unsaid = "heuristic",
           .flag =
               {"--cudnn", "NAME,...",
                "how a GPU's convolutions, and its attention in 16 bits, choose their "
                "algorithm: by cuDNN's heuristic (default), or benchmark: the fastest of a few"},
           .devices = AxisDevices::gpu},
          &CompileOptions::convolutions,
          {{"heuristic", ConvolutionChoice::heuristic},
           {"benchmark", ConvolutionChoice::benchmark}}),
      {.key = "zero",
       .role = AxisRole::how,
       .description =
           "whether the first gradient of an update overwrites the last one's, or all are "
           "added to gradients that each update keeps and sets to zero",
       .values = {"overwrite", "keep"},
       .unsaid = "overwrite",
       .flag = {"--zero", "NAME,...",
                "overwrite gradients (default), or keep them: set them to zero and add to them, as "
                "PyTorch does with zero_grad(set_to_none=False)"},
       .devices = AxisDevices::both,
       .training_only = true},
      {.key = "loader",
       .role = AxisRole::how,
       .description = "threads beside those of the computation that assemble batches from the rows",
       .unsaid = "0",
       .flag =
           {"--loader", "N,...",
            "in an epoch on the CPU, let so many threads assemble the next batches from the rows "
            "while it trains, as a framework's data loader does (default: 0, batches lie ready; "
            "with --shuffle=epoch the thread that trains assembles them)",
            most_threads, 0},
       .devices = AxisDevices::cpu,
       .training_only = true},
      {.key = "ranks",
       .role = AxisRole::how,
       .description = "processes that train together, each on a share of every batch",
       .unsaid = "1",
       .flag = {"--ranks", "N,...",
                "train also on so many processes (ranks), which share each batch and sum their "
                "gradients over MPI, on GPUs over NCCL, one for each rank; bench starts them with "
                "mpirun, or was started by it",
                most_ranks},
       .devices = AxisDevices::both,
       .training_only = true},
      {.key = "bucket",
       .role = AxisRole::how,
       .description = "bytes of gradients from which on ranks sum them, while others are computed",
       .unsaid = std::to_string(TrainingOptions().bucket_bytes),
       .flag = {"--bucket", "BYTES,...",
                "with --ranks, sum gradients as soon as so many bytes are complete (default: "
                "26214400, as PyTorch's DistributedDataParallel)",
                largest_size},
       .devices = AxisDevices::both,
       .training_only = true},
      {.key = "cpu_threads",
       .role = AxisRole::how,
       .description = "CPU threads of the computation",
       .flag = {"--threads", "N,...",
                "CPU threads (default: 1, 2, 4 ... up to the number of cores)", most_threads},
       .apply =
           [](CompileOptions& options, const std::string& value) {
             options.threads = parse_number<int>("--threads", value, 1, most_threads);
           },
       .devices = AxisDevices::cpu},
  };
}

std::vector<Axis>& table() {
  static std::vector<Axis> all = [] {
    std::vector<Axis> both = computation_axes();
    std::ranges::move(device_axes(), std::back_inserter(both));
    return both;
  }();
  return all;
}

/// Throws std::logic_error where the axis does not have the value.
void require_value(const Axis& axis, const std::string& value) {
  const auto& values = axis.values;
  if (!values.empty() && !contains(values, value)) {
    throw std::logic_error("the axis '" + axis.key + "' has no value '" + value +
                           "'; add it to the table in bench/command_line/axes.cpp");
  }
}

Configuration::const_iterator find_key(const Configuration& configuration, const std::string& key) {
  return std::ranges::find_if(configuration, [&](const auto& pair) { return pair.first == key; });
}

}  // namespace

const std::vector<BenchmarkFamily>& families() {
  static const std::vector<BenchmarkFamily> all{
      {.name = "Peak", .worth = 5, .bounds_others = true},
      {.name = "Copy", .worth = 1},
      {.name = "Collective", .worth = 5, .bounds_others = true},
      {.name = "Gemm", .worth = 2},
      {.name = "Layer", .worth = 3},
      {.name = "Epoch", .worth = 0, .trains = Trains::epochs},
      {.name = "Minibatch", .worth = 4, .trains = Trains::steps},
      {.name = "Forward", .worth = 4, .trains = Trains::forward_passes},
      {.name = "Command", .worth = 6},  // of other programs (docs/howto/two-programs.md)
  };
  return all;
}

const BenchmarkFamily& find_family(const std::string& name) {
  const auto at = std::ranges::find(families(), name, &BenchmarkFamily::name);
  if (at == families().end()) {
    throw std::out_of_range("no family '" + name +
                            "'; add it to the table in bench/command_line/axes.cpp");
  }
  return *at;
}

bool includes(AxisDevices devices, AxisDevices device) {
  return devices == AxisDevices::both ? device != AxisDevices::none : devices == device;
}

std::vector<std::string> Axis::values_on(AxisDevices device, bool training) const {
  std::vector<std::string> found;
  std::ranges::copy_if(values, std::back_inserter(found), [&](const std::string& value) {
    const auto scope = scopes.find(value);
    return scope == scopes.end() ||
           (includes(scope->second.devices, device) && (training || !scope->second.training_only));
  });
  return found;
}

const std::vector<Axis>& axes() { return table(); }

void add_axes(const std::vector<Axis>& more) {
  for (const Axis& axis : more) {
    const auto threads = std::ranges::find(table(), "cpu_threads", &Axis::key);
    if (std::ranges::none_of(table(), [&](const Axis& known) { return known.key == axis.key; })) {
      table().insert(threads, axis);
    }
  }
}

const Axis& find_axis(const std::string& key) {
  const auto at = std::ranges::find(axes(), key, &Axis::key);
  if (at == axes().end()) {
    throw std::logic_error("no axis '" + key +
                           "'; add it to the table in bench/command_line/axes.cpp");
  }
  return *at;
}

std::string to_string(AxisRole role) {
  constexpr std::array named{std::pair{"what", AxisRole::what}, std::pair{"alike", AxisRole::alike},
                             std::pair{"how", AxisRole::how}};
  return name_in(named, role);
}

Configuration in_order(const Configuration& configuration) {
  std::map<const Axis*, std::string> values;  // by their place in the table
  for (const auto& [key, value] : configuration) {
    const Axis& axis = find_axis(key);
    require_value(axis, value);
    if (!values.emplace(&axis, value).second) {
      throw std::logic_error("a row has '" + key + "' twice");
    }
  }
  Configuration ordered;
  for (const auto& [axis, value] : values) {
    if (value != axis->unsaid) {
      ordered.emplace_back(axis->key, value);
    }
  }
  return ordered;
}

Configuration joined(Configuration first, const Configuration& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

Configuration without(const std::string& key, Configuration configuration) {
  std::erase_if(configuration, [&](const auto& pair) { return pair.first == key; });
  return configuration;
}

const std::string& value_of(const Configuration& configuration, const std::string& key) {
  const auto at = find_key(configuration, key);
  if (at == configuration.end()) {
    throw std::logic_error("a configuration lacks '" + key + "'");
  }
  return at->second;
}

std::string value_or_unsaid(const Configuration& configuration, const std::string& key) {
  const auto at = find_key(configuration, key);
  return at == configuration.end() ? find_axis(key).unsaid : at->second;
}

bool is_said(const Configuration& configuration, const std::string& key) {
  return value_or_unsaid(configuration, key) != find_axis(key).unsaid;
}

std::int64_t number_of(const Configuration& configuration, const std::string& key) {
  const std::string text = value_or_unsaid(configuration, key);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
    throw std::logic_error("a configuration's '" + key + "' is no number but '" + text + "'");
  }
  return number;
}

std::string words_of_threads(const std::string& value) {
  return value + (value == "1" ? " thread" : " threads");
}

Configuration configuration_of(const Choice& choice, AxisDevices device) {
  const auto said = [](const std::string& key, auto member, auto value) {
    const std::vector<std::string>& names = find_axis(key).values;
    return std::pair(key, *std::ranges::find_if(names, [&](const std::string& name) {
                       return options_of({{key, name}}).*member == value;
                     }));
  };
  const auto execution = said("execution", &CompileOptions::execution, choice.execution);
  return device == AxisDevices::cpu
             ? Configuration{execution, {"cpu_threads", std::to_string(choice.threads)}}
             : in_order({execution, said("products", &CompileOptions::products, choice.products),
                         said("cudnn", &CompileOptions::convolutions, choice.convolutions)});
}

CompileOptions options_of(const Configuration& configuration) {
  CompileOptions options;
  for (const auto& [key, value] : configuration) {
    if (const Axis& axis = find_axis(key); axis.apply) {
      require_value(axis, value);
      axis.apply(options, value);
    }
  }
  return options;
}

}  // namespace crossover::bench
