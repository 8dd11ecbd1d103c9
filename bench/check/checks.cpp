// SPDX-License-Identifier: Apache-2.0
#include "check/check.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "crossover/catalogue.h"
#include "crossover/executions.h"
#include "crossover/fingerprint.h"
#include "crossover/networks.h"
#include "crossover/reference.h"
#include "crossover/start.h"
#include "crossover/verify.h"
#include "families/families.h"

namespace crossover::bench {
namespace {

using Checks = std::vector<Check>;

/// Adds one of one part.
void add(const Device& device, const std::string& what, const std::string& precision,
         const std::string& how, const Part& part, Checks& to) {
  to.push_back({device.name(), what, precision, how, {part}});
}

constexpr std::array checked_precisions{Precision::f32, Precision::tf32, Precision::bf16,
                                        Precision::f16};

// ---- networks

/// A network that no catalogue has, with its data: three steps, the last one smaller. Of 16
/// samples: in tf32 a ReLU here and there falls on the other side of zero, of 4 or 8 samples one
/// too many.
Task tiny(const std::string& name, Model model, const Optimizer& optimizer) {
  model.name = name;
  constexpr std::int64_t batch = 16;
  return {.model = model,
          .rows = 3 * batch - 2,
          .batch = batch,
          .optimizer = optimizer,
          .generate = [model](std::int64_t rows) { return uniform_data(model, rows); }};
}

/// Products of sequences, their softmax, and gated recurrent units.
Model asking() {
  Model model{.name = "", .sample = {6}, .sample_type = Type::i32, .classes = 5, .layers = {}};
  const Value words = model.add(EmbeddingLayer{11, 16}, {0});
  const Value query = model.add(LinearLayer{16}, {words});
  Value value =
      model.add(MatmulLayer{.transpose = true, .heads = 2, .scale = 0.25}, {query, words});
  value = model.add(SoftmaxLayer{.heads = 2, .causal = true}, {value});
  value = model.add(MatmulLayer{.heads = 2}, {value, words});
  value = model.add(MultiplyLayer{}, {model.add(GruLayer{16}, {value}), query});
  model.add(LinearLayer{5}, {model.add(OnePlaceLayer{.is_last = true}, {value})});
  return model;
}

/// Images made smaller and larger again, with functions, dropout and groups.
Model enlarging() {
  Model model{.name = "", .sample = {16, 8, 8}, .classes = 64, .loss = LossFunction::mse};
  const Value whole = model.add(ConvolutionLayer{16, {.size = 3, .padding = 1}}, {0});
  Value value = model.add(GroupNormLayer{.groups = 2}, {whole});
  value = model.add(FunctionLayer<functions::Elu>{}, {value});
  value =
      model.add(DropoutLayer{0.25}, {model.add(MaxPoolLayer{{.size = 2, .stride = 2}}, {value})});
  const Value larger = model.add(TransposedConvolutionLayer{8, {.size = 2, .stride = 2}}, {value});
  value = model.add(ConcatenateLayer{}, {model.add(UpsampleLayer{2}, {value}), larger});
  value = model.add(ConcatenateLayer{}, {value, whole});
  value = model.add(InterpolateLayer{{4, 6}}, {value});
  value = model.add(InterpolateLayer{8, true}, {value});
  model.add(FlattenLayer{}, {model.add(ConvolutionLayer{1, {.size = 3, .padding = 1}}, {value})});
  return model;
}

std::vector<Task> tiny_networks() {
  const auto sgd = [](double rate) { return SgdOptions{.learning_rate = rate}; };
  const Model layers = mlp("layers", {16, 16, 16, 4}, Activation::relu);
  return {tiny("tiny-mlp", layers, sgd(0.1)),
          tiny("tiny-adamw", layers, AdamWOptions{.learning_rate = 1e-3, .weight_decay = 1e-4}),
          tiny("tiny-cnn", alexnet(AlexNetR{.image = 12, .channels = {4, 8, 8}, .classes = 3}),
               sgd(0.1)),
          tiny("tiny-resnet",
               resnet(ResNetR{.blocks = 1, .image = 8, .channels = {16, 16, 16}, .classes = 3}),
               sgd(0.01)),
          tiny("tiny-lstm", language_model({.vocabulary = 11, .hidden = 8, .time = 4}), sgd(1)),
          tiny("tiny-gpt", gpt({.vocabulary = 11, .width = 16, .layers = 1, .heads = 2, .time = 8}),
               AdamWOptions{.learning_rate = 1e-3, .weight_decay = 1e-4}),
          tiny("tiny-vit", vit({.image = 8, .width = 16, .layers = 1, .heads = 2, .classes = 3}),
               AdamWOptions{.learning_rate = 1e-3, .weight_decay = 1e-4}),
          tiny("tiny-gru", asking(), sgd(0.1)),
          tiny("tiny-unet", enlarging(), MomentumOptions{.learning_rate = 0.01})};
}

// ---- operations

/// A step whose operations are tried one by one.
struct TriedStep {
  std::string of;  ///< "tiny-mlp", "tiny-mlp, fused"
  Workload workload;
  std::optional<Dataset> data;
  std::optional<Reference> done = std::nullopt;  ///< once one is tried
};
using TriedSteps = std::vector<std::shared_ptr<TriedStep>>;

/// Those of the tiny networks, each operation by itself and with its neighbours; and a product
/// that no network has.
TriedSteps tried_steps(Precision precision) {
  TriedSteps all;
  const auto add = [&](const std::string& of, Workload workload, std::optional<Dataset> data) {
    all.push_back(std::make_shared<TriedStep>(TriedStep{of, std::move(workload), std::move(data)}));
  };
  for (const Task& task : tiny_networks()) {
    TrainingOptions options{.rows = task.rows,
                            .batch = task.batch,
                            .optimizer = task.optimizer,
                            .precision = precision};
    const Dataset data = task.generate(task.rows);
    add(task.model.name, training_epoch(task.model, options), data);
    options.zero_gradients = true;
    add(task.model.name + ", fused", fuse(training_epoch(task.model, options)), data);
  }
  Workload product;
  constexpr Start uniform{.bound = 1};
  for (const auto& [name, shape] :
       {std::pair{"a", Shape{48, 40}}, {"b", Shape{40, 56}}, {"c", Shape{48, 56}}}) {
    product.tensors.push_back({.name = name,
                               .shape = shape,
                               .type = storage_of(precision),
                               .role = Role::parameter,
                               .start = uniform});
  }
  product.steps = {Step{{Gemm{.a = 0, .b = 1, .c = 2}}}};
  product.order = {Run{}};
  add("matrices", std::move(product), std::nullopt);
  return all;
}

/// The reference behind the step: its tensors are what operations are tried on.
Reference& done(TriedStep& step) {
  if (!step.done) {
    step.done.emplace(step.workload);
    restart(*step.done);
    if (step.data) {
      set_data(*step.done, *step.data);
    }
    step.done->run(0, 1);
  }
  return *step.done;
}

/// An operation of a step by itself.
Workload alone(const Workload& step, const Op& op) {
  Workload workload{.tensors = step.tensors, .steps = {Step{{op}}}, .order = {Run{}}};
  for (Tensor& tensor : workload.tensors) {
    if (tensor.role == Role::loss) {
      tensor.shape = {1};
    } else {
      tensor.role = Role::activation;
    }
  }
  return workload;
}

void run_operation(TriedStep& step, const Op& op, const Backend& backend,
                   const CompileOptions& options) {
  const Workload workload = alone(step.workload, op);
  const auto program = backend.compile(workload, options);
  Reference reference(workload);
  const Operands used = operands(op);
  for (const std::vector<Id>& ids : {used.reads, used.writes}) {
    for (const Id id : ids) {
      const Tensor& tensor = step.workload[id];
      const auto values = done(step)[tensor.role == Role::input ? tensor.source : id];
      upload(*program, workload, id, values.first(reference[id].size()));
      // As the type rounds them.
      const std::vector<double> stored = download(*program, workload, id);
      std::ranges::copy(stored, reference[id].begin());
    }
  }
  verify_as_they_are(*program, reference, options.precision);
}

bool calls_a_library(const Op& op) {
  const OpCategory category = crossover::category(op);
  return category == OpCategory::product || category == OpCategory::convolution;
}

/// Whether that precision makes a difference to it.
bool is_of(const Workload& step, const Op& op, Precision precision) {
  const Operands used = operands(op);
  const auto in_16_bits = [&](Id id) { return is_16_bit(step[id].type); };
  return precision == Precision::tf32
             ? calls_a_library(op)
             : storage_of(precision) == Type::f32 || std::ranges::any_of(used.reads, in_16_bits) ||
                   std::ranges::any_of(used.writes, in_16_bits);
}

/// A check for each operation, with a part for each step that has it.
void add_operations(const Device& device, const CompileOptions& options, const std::string& how,
                    const TriedSteps& steps, Checks& to) {
  std::map<std::string, Check> found;
  std::set<std::uint64_t> known;
  for (const std::shared_ptr<TriedStep>& step : steps) {
    std::map<std::string, std::vector<Op>> tried;
    for (const Op& op : step->workload.steps.front().ops) {
      if (is_of(step->workload, op, options.precision) &&
          known.insert(fingerprint(alone(step->workload, op))).second) {
        tried[name(op)].push_back(op);
      }
    }
    for (const auto& [what, ops] : tried) {
      Check& check = found
                         .try_emplace(what, Check{.device = device.name(),
                                                  .what = what,
                                                  .precision = to_string(options.precision),
                                                  .how = how,
                                                  .calls_libraries = calls_a_library(ops.front())})
                         .first->second;
      check.parts.push_back({what + " of " + step->of, [&device, options, step, own = ops] {
                               for (const Op& op : own) {
                                 run_operation(*step, op, *device.backend, options);
                               }
                             }});
    }
  }
  for (auto& [what, check] : found) {
    to.push_back(std::move(check));
  }
}

// ---- libraries

/// Unsupported where it takes more launches than where every epilogue and fused plan exists.
void require_fused(const Workload& workload, const Device& gpu, const CompileOptions& options) {
  const std::int64_t least = gpu.kind->describe("")->estimate(workload, options).launches;
  const std::int64_t launches = gpu.backend->plan(workload, options)->launches();
  if (launches > least) {
    throw Unsupported("not fused: " + std::to_string(launches) + " launches in place of " +
                      std::to_string(least));
  }
}

/// Of layers wide enough for every plan of the libraries.
void add_fusions(const Device& gpu, Precision precision, Checks& to) {
  Model images{.name = "images", .sample = {16, 16, 16}, .classes = 8, .layers = {}};
  const ConvolutionLayer convolution{32, {.size = 3, .padding = 1}};
  Value value = 0;
  for (int i = 0; i < 2; ++i) {
    value = images.add(ActivationLayer{Activation::relu}, {images.add(convolution, {value})});
  }
  images.add(LinearLayer{8}, {images.add(GlobalAveragePoolLayer{}, {value})});
  for (const auto& [what, model] :
       {std::pair{"cuBLASLt epilogues", mlp("layers", {64, 64, 64, 64}, Activation::relu)},
        {"cuDNN plans", images}}) {
    const Workload workload =
        fuse(training_epoch(model, {.rows = 64, .batch = 64, .precision = precision}));
    const auto run = [&gpu, precision, workload] {
      require_fused(workload, gpu, {.precision = precision});
    };
    add(gpu, what, to_string(precision), "", {model.name, run}, to);
  }
}

void add_driver(const Device& gpu, Checks& to) {
  const auto run = [&gpu] {
    if (!gpu.backend->describe().gpu.driver) {
      throw Unsupported("the driver's library tells nothing");
    }
    if (!gpu.backend->state().sm_clock_mhz) {
      throw Unsupported("it tells no clock");
    }
  };
  add(gpu, "NVML", "", "", {"facts and clocks", run}, to);
}

void add_compiler(const Device& gpu, Checks& to) {
  const auto run = [&gpu] {
    const auto libraries = gpu.backend->describe().libraries;
    if (!libraries.contains("cudnn")) {
      throw Unsupported("this build has no cuDNN");
    }
    if (!libraries.contains("nvrtc")) {
      throw Unsupported(
          "libnvrtc is not found: cuDNN has no attention and fewer convolutions; it is in "
          "the CUDA toolkit and in the Python package nvidia-cuda-nvrtc");
    }
  };
  add(gpu, "cuDNN's compiler", "", "", {"NVRTC", run}, to);
}

/// A line for each precision that the device has no products in, in the place of all others.
void add_missing(const Device& device, Checks& to) {
  for (const Precision precision : checked_precisions) {
    if (const std::string why = device.backend->missing_for(precision); !why.empty()) {
      add(device, "products", to_string(precision), "",
          {"products", [why] { throw Unsupported(why); }}, to);
    }
  }
}

// ---- probes

void add_probe(const Device& device, const std::string& what, const std::string& precision,
               const std::string& how, const ProbeSpec& spec, Checks& to) {
  const auto run = [&device, spec] {
    const auto probe = device.backend->make_probe(spec);
    probe->run();
    probe->check();
    static_cast<void>(probe->device_seconds());
  };
  add(device, what, precision, how, {what, run}, to);
}

constexpr std::int64_t probed_bytes = 1 << 20;
constexpr std::int64_t probed_values = 1 << 18;
constexpr std::int64_t probed_size = 256;

/// What a CPU and a GPU both have.
void add_common_probes(const Device& device, const std::string& how, int threads, Checks& to) {
  add_probe(device, "triad probe", "", how, TriadProbe{.values = probed_values, .threads = threads},
            to);
  for (const Precision precision : checked_precisions) {
    if (device.backend->missing_for(precision).empty()) {
      add_probe(device, "matrix probe", to_string(precision), how,
                MatrixProbe{.precision = precision, .size = probed_size, .threads = threads}, to);
    }
  }
}

void add_gpu_probes(const Device& gpu, Checks& to) {
  add_probe(gpu, "launch probe", "", "", LaunchProbe{.launches = 10}, to);
  add_probe(gpu, "synchronization probe", "", "", SynchronizeProbe{}, to);
  for (const auto& [name, direction] : {std::pair{"copy h2d", Direction::host_to_device},
                                        {"copy d2h", Direction::device_to_host},
                                        {"copy both", Direction::both},
                                        {"copy d2d", Direction::device_to_device}}) {
    for (const auto& [how, memory, asynchronous] :
         {std::tuple{"pageable", HostMemory::pageable, false},
          {"pinned", HostMemory::pinned, false},
          {"pinned, async", HostMemory::pinned, true}}) {
      if (direction != Direction::both || memory == HostMemory::pinned) {
        add_probe(gpu, name, "", how,
                  CopyProbe{.direction = direction,
                            .memory = memory,
                            .asynchronous = asynchronous,
                            .bytes = probed_bytes},
                  to);
      }
    }
  }
  add_probe(gpu, "fma probe", "f32", "", FmaProbe{.values = probed_values, .length = 16}, to);
  add_common_probes(gpu, "", 1, to);
  add_probe(gpu, "graph probe", "", "", GraphNodeProbe{.nodes = 10}, to);
}

void add_cpu_probes(const Device& cpu, int threads, const std::string& how, Checks& to) {
  add_probe(cpu, "copy h2h", "", "",
            CopyProbe{.direction = Direction::host_to_host, .bytes = probed_bytes}, to);
  add_probe(cpu, "fma probe", "f32", how,
            FmaProbe{.values = std::int64_t{384} * threads, .length = 1 << 10, .threads = threads},
            to);
  add_common_probes(cpu, how, threads, to);
  add_probe(cpu, "fork-join probe", "", how, ForkJoinProbe{.threads = threads}, to);
}

// ---- rows of networks

/// How a row runs: "graph", "graph, autotuned", "auto, 2 threads".
std::string how_of(const Row& row) {
  std::string how = text_of(row.spec, &RowSpec::execution);
  if (row.device->has_threads()) {
    how += ", " + words_of_threads(value_of(row.spec, &RowSpec::threads));
  } else if (row.spec.products == ProductChoice::autotuned) {
    how += ", autotuned";
  }
  return how;
}

/// Rows that are made as bench makes its own.
struct CheckedRows {
  Arguments arguments;
  RowContext context;

  CheckedRows(Arguments of, Devices& devices)
      : arguments(std::move(of)), context(arguments, devices) {}
};

void run_row(RowContext& context, const RowSpec& row) {
  Result result;
  const auto prepared = make_row(context, row, result);
  if (result.not_verified) {
    throw Mismatch(*result.not_verified);
  }
  prepared->start();
  prepared->run();
  prepared->check();
}

/// Epochs of the tiny networks in every execution and precision.
Checks network_checks(const Arguments& arguments, Devices& devices) {
  const std::string threads = usable_cores() > 1 ? "1," + std::to_string(usable_cores()) : "1";
  Arguments epochs = parse({"--sweep=full", "--family=Epoch", "--threads=" + threads});
  std::erase_if(epochs.gpu_modes.of_training,
                [](const RowSpec& mode) { return mode.placement != Placement::resident; });
  epochs.memory_limit_bytes = arguments.memory_limit_bytes;
  epochs.tasks = tiny_networks();
  const auto checked = std::make_shared<CheckedRows>(std::move(epochs), devices);
  Checks all;
  for (const Precision precision : checked_precisions) {
    checked->arguments.precisions = {precision};
    Rows rows;
    register_epochs(checked->arguments, devices, rows);
    for (const std::string& name : rows.names()) {
      const Row& row = rows[name];
      if (row.device->backend->missing_for(precision).empty()) {
        const auto run = [checked, spec = row.spec] { run_row(checked->context, spec); };
        add(*row.device, value_of(row.spec, &RowSpec::model), to_string(precision), how_of(row),
            {"epoch", run}, all);
        all.back().calls_libraries = true;
      }
    }
  }
  return all;
}

}  // namespace

std::string Check::name() const {
  std::string text;
  for (const std::string& part : columns()) {
    text += (text.empty() || part.empty() ? "" : " ") + part;
  }
  return text;
}

Checks all_checks(const Arguments& arguments, Devices& devices) {
  const Checks networks = network_checks(arguments, devices);
  std::map<Precision, TriedSteps> steps;
  for (const Precision precision : checked_precisions) {
    steps[precision] = tried_steps(precision);
  }
  Checks all;
  const auto add_networks = [&](const Device& device, const std::string& execution) {
    for (const Check& check : networks) {
      if (check.device == device.name() &&
          (execution.empty() || check.how == execution || check.how.starts_with(execution + ","))) {
        all.push_back(check);
      }
    }
  };
  const auto add_precisions = [&](const Device& device, const auto& add) {
    for (const Precision precision : checked_precisions) {
      if (device.backend->missing_for(precision).empty()) {
        add(precision);
      }
    }
  };
  for (Device* const found : devices.gpus()) {
    Device& gpu = *found;
    add_gpu_probes(gpu, all);
    add_driver(gpu, all);
    add_compiler(gpu, all);
    add_missing(gpu, all);
    // What the time does not suffice for is an operation, which networks hold too.
    for (std::size_t risk = 0; risk <= most_risk; ++risk) {
      for (const ExecutionFacts& one : execution_table) {
        if (one.on_gpu && !one.on_ranks_alone && one.risk == risk) {
          add_networks(gpu, std::string(one.name));
        }
      }
    }
    add_precisions(gpu, [&](Precision precision) { add_fusions(gpu, precision, all); });
    for (const Execution execution : {Execution::eager, Execution::graph}) {
      add_precisions(gpu, [&](Precision precision) {
        add_operations(gpu, {.precision = precision, .execution = execution},
                       execution == Execution::eager ? "eager" : "graph", steps.at(precision), all);
      });
    }
  }
  const int threads = usable_cores();
  const std::string how = words_of_threads(threads);
  for (Device& device : devices.all) {
    if (!device.has_threads()) {
      continue;
    }
    add_missing(device, all);
    add_cpu_probes(device, threads, how, all);
    add_networks(device, "");
    add_precisions(device, [&](Precision precision) {
      add_operations(device, {.threads = threads, .precision = precision}, "eager, " + how,
                     steps.at(precision), all);
    });
  }
  return all;
}

}  // namespace crossover::bench
