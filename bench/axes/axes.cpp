// SPDX-License-Identifier: Apache-2.0
#include "axes/axes.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>
#include <type_traits>

#include "axes/flag.h"
#include "crossover/backends.h"
#include "crossover/executions.h"
#include "crossover/names.h"

namespace crossover::bench {
namespace {

/// By their names, plainest first.
template <class Value>
using Named = std::vector<std::pair<std::string, Value>>;

template <class Value>
constexpr bool is_number = std::is_integral_v<Value> && !std::is_same_v<Value, bool>;

/// None where no value is called so.
template <class Value>
std::optional<Value> value_in_text(const std::string& text, const Named<Value>& names) {
  if constexpr (std::is_same_v<Value, std::string>) {
    return text;
  } else if constexpr (is_number<Value>) {
    Value number{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && end == text.data() + text.size() ? std::optional(number)
                                                                    : std::nullopt;
  } else {
    return value_in(names, text);
  }
}

template <class Value>
std::string text_of_value(const Value& value, const Named<Value>& names) {
  if constexpr (std::is_same_v<Value, std::string>) {
    return value;
  } else if constexpr (is_number<Value>) {
    return std::to_string(value);
  } else {
    return name_in(names, value);
  }
}

/// The line of that member. `names`: of its values; none of numbers, and of names at large.
template <class Member>
Axis line(Member RowSpec::*member, Axis axis, const Named<ValueOf<Member>>& names = {}) {
  using Value = ValueOf<Member>;
  if (!names.empty()) {
    axis.values = all_names(names);
  }
  axis.member = member;
  axis.read = [member, names](const RowSpec& spec) {
    if constexpr (std::is_same_v<Member, Value>) {
      return text_of_value<Value>(spec.*member, names);
    } else {
      return spec.*member ? text_of_value<Value>(*(spec.*member), names) : "";
    }
  };
  axis.unsaid = axis.read(RowSpec());
  axis.write = [member, names, key = axis.key, flag = axis.flag](RowSpec& spec,
                                                                 const std::string& text) {
    const std::optional<Value> value = value_in_text<Value>(text, names);
    if (!value) {
      throw std::logic_error(names.empty()
                                 ? "a configuration's '" + key + "' is no number but '" + text + "'"
                                 : "the axis '" + key + "' has no value '" + text +
                                       "'; add it to the table in bench/axes/axes.cpp");
    }
    if (flag.most > 0) {
      parse_number(flag.name, text, flag.least, flag.most);
    }
    spec.*member = *value;
  };
  axis.copy = [member](RowSpec& to, const RowSpec& from) { to.*member = from.*member; };
  return axis;
}

/// The line of an axis that another program brings.
Axis line_of_other(Axis axis) {
  const std::string& key = axis.key;
  axis.read = [key, unsaid = axis.unsaid](const RowSpec& spec) {
    const auto at = spec.others.find(key);
    return at == spec.others.end() ? unsaid : at->second;
  };
  axis.write = [key, unsaid = axis.unsaid](RowSpec& spec, const std::string& text) {
    spec.others.erase(key);
    if (text != unsaid) {
      spec.others.emplace(key, text);
    }
  };
  axis.copy = [write = axis.write, read = axis.read](RowSpec& to, const RowSpec& from) {
    write(to, read(from));
  };
  return axis;
}

Named<RowFamily> family_names() {
  Named<RowFamily> names;
  for (const BenchmarkFamily& one : families()) {
    names.emplace_back(one.name, one.family);
  }
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

std::vector<std::string> backend_names() {
  std::vector<std::string> names;
  std::ranges::transform(backends(), std::back_inserter(names), &BackendKind::name);
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
      line(&RowSpec::family,
           {.key = "family",
            .description = "kind of benchmark",
            .flag =
                {"--family", "NAME,...",
                 "measure only these families: " + join(all_names(family_names())) +
                     " (default: all; of networks named by --mlp or --model those that train, and "
                     "the ceilings; Forward by itself: --family=Forward)"}},
           family_names()),
      line(&RowSpec::quantity,
           {.key = "quantity", .description = "which ceiling of the device is measured"}),
      line(&RowSpec::direction,
           {.key = "direction",
            .description = "source and destination of a copy: host (h) or device (d)"},
           {{"h2h", Direction::host_to_host},
            {"h2d", Direction::host_to_device},
            {"d2h", Direction::device_to_host},
            {"both", Direction::both},
            {"d2d", Direction::device_to_device}}),
      line(&RowSpec::op,
           {.key = "op",
            .description = "what the ranks compute together: the sum of their values, on each"},
           {{"allreduce", CollectiveOp::allreduce}}),
      line(
          &RowSpec::bytes,
          {.key = "bytes", .description = "bytes copied, or that each rank has of what is summed"}),
      line(&RowSpec::model, {.key = "model",
                             .description = "network",
                             .flag = {"--model", "NAME,...",
                                      "measure these networks instead of the sweep's; --models "
                                      "lists them, and disc-8x1.5 "
                                      "is disc-8 with its hidden widths times 1.5"}}),
      line(&RowSpec::m, {.key = "m", .description = "rows of the result"}),
      line(&RowSpec::n, {.key = "n", .description = "columns of the result"}),
      line(&RowSpec::k, {.key = "k", .description = "inner dimension of the product"}),
      line(&RowSpec::transpose,
           {.key = "transpose",
            .description = "which factors are transposed (t) and which are not (n)"},
           {{"nn", Transposes::nn},
            {"nt", Transposes::nt},
            {"tn", Transposes::tn},
            {"tt", Transposes::tt}}),
      line(&RowSpec::width,
           {.key = "width", .description = "input and output features of the layer"}),
      line(
          &RowSpec::batch,
          {.key = "batch",
           .description = "samples per training step, or per forward pass",
           .flag = {"--batch", "N,...",
                    "batch sizes (default: the network's own, of forward passes 1, 32 and 1024); a "
                    "larger one than the data has rows is all its rows",
                    largest_size}}),
      line(&RowSpec::activation, {.key = "activation", .description = "function after the layer"},
           {{"relu", Activation::relu}, {"sigmoid", Activation::sigmoid}}),
      line(&RowSpec::pass,
           {.key = "pass", .description = "forward (values) or backward (gradients)"},
           {{"forward", LayerPass::forward}, {"backward", LayerPass::backward}}),
      line(&RowSpec::form,
           {.key = "form",
            .description = "layer and activation as two operations (separate) or as one (fused)"},
           {{"separate", LayerForm::separate}, {"fused", LayerForm::fused}}),
      line(&RowSpec::precision,
           {.key = "precision",
            .role = AxisRole::alike,
            .description = "arithmetic of the matrix products and type of their operands",
            .flag = {"--precision", "NAME,...",
                     "f32, tf32, bf16 or f16 (default: f32, with TF32 off)"}},
           precision_names()),
      line(&RowSpec::size,
           {.key = "size",
            .description =
                "rows and columns of a product's square matrices, or the {n} of a command"}),
      line(&RowSpec::cache,
           {.key = "cache", .description = "operands in the cache (warm) or in memory (cold)"},
           {{"warm", OperandCache::warm}, {"cold", OperandCache::cold}}),
      line(&RowSpec::accumulate,
           {.key = "accumulate",
            .description = "batches whose gradients are summed for one update",
            .flag =
                {"--accumulate", "K,...",
                 "in an epoch, update the parameters once every K batches, with summed gradients "
                 "(default: 1)",
                 largest_size}}),
      line(
          &RowSpec::copies,
          {.key = "copies",
           .description =
               "networks that train at once on the same rows, each with parameters of its own",
           .flag =
               {"--copies", "K,...",
                "in an epoch, train K copies of the network at once on the same rows, each from "
                "other parameters: on the CPU each thread trains some of them, on a GPU one launch "
                "is for all, or each has a stream (default: 1)",
                most_copies}}),
      line(&RowSpec::shuffle,
           {.key = "shuffle",
            .description =
                "order in which an epoch reads the rows: as they lie (none), or another one in "
                "each epoch (epoch)",
            .flag =
                {"--shuffle", "NAME,...",
                 "in an epoch, read the rows as they lie (none, default) or in another order each "
                 "time (epoch; on the CPU)"}},
           {{"none", false}, {"epoch", true}}),
      line(&RowSpec::loss_every_step,
           {.key = "loss",
            .role = AxisRole::alike,
            .description =
                "when the host waits for the GPU's losses: after each epoch or after each step",
            .flag = {"--loss", "epoch|step",
                     "when the host waits for the GPU's losses (default: epoch)"}},
           {{"epoch", false}, {"step", true}}),
  };
}

// ---- how, and where

std::vector<Axis> device_axes() {
  return {
      line(&RowSpec::program,
           {.key = "program",
            .role = AxisRole::how,
            .description = "what computes: bench, or a program that takes turns with it",
            .flag =
                {"--program", "NAME,...",
                 "of bench and the programs of --peer, measure only these rows (default: all)"}}),
      line(&RowSpec::step_count,
           {.key = "step_count", .role = AxisRole::how, .description = "the {steps} of a command"}),
      line(&RowSpec::device, {.key = "device",
                              .role = AxisRole::how,
                              .description = "device that computes",
                              .values = backend_names()}),
      line(&RowSpec::execution,
           {.key = "execution",
            .role = AxisRole::how,
            .description =
                "operation by operation (eager), on several ranks with sums of "
                "gradients beside the backward pass (overlapped); on the CPU with "
                "Winograd's products in convolutions of 3x3 (winograd), or a step "
                "without calls between (fused); on a GPU one CUDA graph per step, one "
                "per epoch, or one kernel for the epoch (persistent), which may be "
                "compiled for the network (tailored); or the fastest of the device's (auto)",
            .flag = {"--execution", "NAME,...",
                     "eager, and with --ranks overlapped; on the CPU also winograd (networks with "
                     "convolutions of 3x3) or fused (of linear layers); on a GPU also graph (one "
                     "per step), graph-epoch, persistent or tailored; or auto, the fastest of the "
                     "device's, on "
                     "the CPU with at most the "
                     "threads of the row, on a GPU with the fastest choices of algorithms. Each "
                     "device measures those that it has (default, also where it has none of them: "
                     "the sweep's)"},
            .devices = AxisDevices::both,
            .scopes = execution_scopes()},
           execution_names()),
      line(&RowSpec::memory,
           {.key = "memory", .role = AxisRole::how, .description = "kind of host memory"},
           {{"pageable", HostMemory::pageable}, {"pinned", HostMemory::pinned}}),
      line(&RowSpec::mode,
           {.key = "mode",
            .role = AxisRole::how,
            .description = "whether the host waits for each copy (sync)"},
           {{"sync", CopyMode::sync}, {"async", CopyMode::async}}),
      line(&RowSpec::placement,
           {.key = "data",
            .role = AxisRole::how,
            .description = "where the data set is kept while a GPU trains",
            .flag = {"--placement", "NAME,...",
                     "where a GPU's training data is kept: resident, pageable, pinned "
                     "or pinned-async (default: the sweep's)"},
            .devices = AxisDevices::gpu,
            .training_only = true},
           {{"resident", Placement::resident},
            {"pageable", Placement::pageable},
            {"pinned", Placement::pinned},
            {"pinned-async", Placement::pinned_async}}),
      line(&RowSpec::products,
           {.key = "products",
            .role = AxisRole::how,
            .description = "how a GPU's matrix products choose their algorithm",
            .flag = {"--products", "NAME,...",
                     "how a GPU's matrix products choose their algorithm: by cuBLASLt's "
                     "heuristic (default), or autotuned: the fastest of a few"},
            .devices = AxisDevices::gpu},
           {{"heuristic", ProductChoice::heuristic}, {"autotuned", ProductChoice::autotuned}}),
      line(&RowSpec::convolutions,
           {.key = "cudnn",
            .role = AxisRole::how,
            .description = "how a GPU's convolutions choose their algorithm",
            .flag =
                {"--cudnn", "NAME,...",
                 "how a GPU's convolutions, and its attention in 16 bits, choose their "
                 "algorithm: by cuDNN's heuristic (default), or benchmark: the fastest of a few"},
            .devices = AxisDevices::gpu},
           {{"heuristic", ConvolutionChoice::heuristic},
            {"benchmark", ConvolutionChoice::benchmark}}),
      line(
          &RowSpec::zero_gradients,
          {.key = "zero",
           .role = AxisRole::how,
           .description =
               "whether the first gradient of an update overwrites the last one's, or all are "
               "added to gradients that each update keeps and sets to zero",
           .flag =
               {"--zero", "NAME,...",
                "overwrite gradients (default), or keep them: set them to zero and add to them, as "
                "PyTorch does with zero_grad(set_to_none=False)"},
           .devices = AxisDevices::both,
           .training_only = true},
          {{"overwrite", false}, {"keep", true}}),
      line(&RowSpec::loader,
           {.key = "loader",
            .role = AxisRole::how,
            .description =
                "threads beside those of the computation that assemble batches from the rows",
            .flag = {"--loader", "N,...",
                     "in an epoch on the CPU, let so many threads assemble the next batches from "
                     "the rows "
                     "while it trains, as a framework's data loader does (default: 0, batches lie "
                     "ready; "
                     "with --shuffle=epoch the thread that trains assembles them)",
                     most_threads, 0},
            .devices = AxisDevices::cpu,
            .training_only = true}),
      line(&RowSpec::ranks,
           {.key = "ranks",
            .role = AxisRole::how,
            .description = "processes that train together, each on a share of every batch",
            .flag =
                {"--ranks", "N,...",
                 "train also on so many processes (ranks), which share each batch and sum their "
                 "gradients over MPI, on GPUs over NCCL, one for each rank; bench starts them with "
                 "mpirun, or was started by it",
                 most_ranks},
            .devices = AxisDevices::both,
            .training_only = true}),
      line(&RowSpec::bucket_bytes,
           {.key = "bucket",
            .role = AxisRole::how,
            .description =
                "bytes of gradients from which on ranks sum them, while others are computed",
            .flag = {"--bucket", "BYTES,...",
                     "with --ranks, sum gradients as soon as so many bytes are complete (default: "
                     "26214400, as PyTorch's DistributedDataParallel)",
                     largest_size},
            .devices = AxisDevices::both,
            .training_only = true}),
      line(&RowSpec::threads,
           {.key = "cpu_threads",
            .role = AxisRole::how,
            .description = "CPU threads of the computation",
            .flag = {"--threads", "N,...",
                     "CPU threads (default: 1, 2, 4 ... up to the number of cores)", most_threads},
            .devices = AxisDevices::cpu}),
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

}  // namespace

const std::vector<BenchmarkFamily>& families() {
  static const std::vector<BenchmarkFamily> all{
      {.family = RowFamily::peak,
       .name = "Peak",
       .worth = 5,
       .bounds_others = true,
       .flops_of_iteration = true},
      {.family = RowFamily::copy, .name = "Copy", .worth = 1},
      {.family = RowFamily::collective,
       .name = "Collective",
       .worth = 5,
       .bounds_others = true,
       .flops_of_iteration = true},
      {.family = RowFamily::gemm, .name = "Gemm", .worth = 2},
      {.family = RowFamily::layer, .name = "Layer", .worth = 3},
      {.family = RowFamily::epoch, .name = "Epoch", .worth = 0, .trains = Trains::epochs},
      {.family = RowFamily::minibatch, .name = "Minibatch", .worth = 4, .trains = Trains::steps},
      {.family = RowFamily::forward,
       .name = "Forward",
       .worth = 4,
       .trains = Trains::forward_passes},
      {.family = RowFamily::command,
       .name = "Command",
       .worth = 6},  // of other programs (docs/howto/two-programs.md)
      {.family = RowFamily::function,
       .name = "Function",
       .worth = 6},  // of programs that link crossover::two (docs/howto/two-functions.md)
  };
  return all;
}

const BenchmarkFamily& family_of(const RowSpec& spec) {
  return *std::ranges::find(families(), value_of(spec, &RowSpec::family), &BenchmarkFamily::family);
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
      table().insert(threads, line_of_other(axis));
    }
  }
}

void add_function_axes() {
  add_axes({{.key = problem_key, .description = "what the functions compute"},
            {.key = side_key,
             .role = AxisRole::how,
             .description = "which of the functions that compute it"},
            {.key = transfers_key,
             .role = AxisRole::how,
             .description = "whether the data stays on the device (none), or each call copies its "
                            "input there and its result back (each)",
             .values = {"none", transfers_each},
             .unsaid = "none"},
            {.key = caches_key,
             .description = "whether calls find their data in the caches (hot), or these are "
                            "overwritten before each (flushed)",
             .values = {"hot", caches_flushed},
             .unsaid = "hot"}});
}

const Axis& find_axis(const std::string& key) {
  const auto at = std::ranges::find(axes(), key, &Axis::key);
  if (at == axes().end()) {
    throw std::logic_error("no axis '" + key + "'; add it to the table in bench/axes/axes.cpp");
  }
  return *at;
}

std::string to_string(AxisRole role) {
  constexpr std::array named{std::pair{"what", AxisRole::what}, std::pair{"alike", AxisRole::alike},
                             std::pair{"how", AxisRole::how}};
  return name_in(named, role);
}

Configuration configuration_of(const RowSpec& spec) {
  Configuration configuration;
  for (const Axis& axis : axes()) {
    if (const std::string value = axis.read(spec); value != axis.unsaid) {
      configuration.emplace_back(axis.key, value);
    }
  }
  return configuration;
}

nlohmann::ordered_json configuration_json(const RowSpec& spec) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const auto& [key, value] : configuration_of(spec)) {
    json[key] = value;
  }
  return json;
}

RowSpec spec_in(const nlohmann::ordered_json& configuration) {
  RowSpec spec;
  for (const auto& [key, value] : configuration.items()) {
    find_axis(key).write(spec, value.get<std::string>());
  }
  return spec;
}

RowSpec overlaid(RowSpec first, const RowSpec& second) {
  for (const Axis& axis : axes()) {
    if (axis.is_said(second)) {
      axis.copy(first, second);
    }
  }
  return first;
}

RowSpec part_of(const RowSpec& spec, const std::function<bool(const Axis& axis)>& is_kept) {
  RowSpec part;
  for (const Axis& axis : axes()) {
    if (is_kept(axis)) {
      axis.copy(part, spec);
    }
  }
  return part;
}

CompileOptions options_of(const RowSpec& spec) {
  const CompileOptions plain;
  return {.threads = spec.threads.value_or(plain.threads),
          .precision = spec.precision.value_or(plain.precision),
          .execution = spec.execution.value_or(plain.execution),
          .placement = spec.placement.value_or(plain.placement),
          .products = spec.products,
          .convolutions = spec.convolutions,
          .loss_every_step = spec.loss_every_step};
}

RowSpec spec_of(const Choice& choice, AxisDevices device) {
  return device == AxisDevices::cpu
             ? RowSpec{.execution = choice.execution, .threads = choice.threads}
             : RowSpec{.execution = choice.execution,
                       .products = choice.products,
                       .convolutions = choice.convolutions};
}

std::string words_of_threads(int threads) {
  return std::to_string(threads) + (threads == 1 ? " thread" : " threads");
}

}  // namespace crossover::bench
