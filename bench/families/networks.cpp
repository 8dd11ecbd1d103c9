// SPDX-License-Identifier: Apache-2.0
#include "families/networks.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

#include "crossover/backends.h"
#include "crossover/cost.h"
#include "crossover/executions.h"
#include "crossover/fingerprint.h"
#include "crossover/machine.h"
#include "crossover/network_file.h"
#include "crossover/product.h"
#include "crossover/training.h"
#include "families/device.h"
#include "families/families.h"
#include "families/work.h"
#include "file/context.h"
#include "rows/counters.h"

namespace crossover::bench {

// ---- Cost

namespace {

bool counts_a_pass(const Arguments& arguments) {
  return arguments.families == std::vector{RowFamily::forward};
}

Json operation_json(const Workload& workload, const Op& op) {
  const Cost counted = cost(workload, op);
  Json json = {{"kind", to_string(category(op))},
               {"operation", name(op)},
               {"flops", counted.flops},
               {"bytes", counted.bytes},
               {"launches", counted.launches}};
  for (const OpProduct& product : products_of(workload, op)) {
    const ProductSize& size = product.size;
    json["products"].push_back(
        {{"pass", product.pass}, {"m", size.m}, {"n", size.n}, {"k", size.k}});
  }
  return json;
}

Json step_json(const Workload& epoch) {
  const Step& step = epoch.steps[static_cast<std::size_t>(epoch.order.front().step)];
  const Cost counted = cost(epoch, step);
  Json json = {{"flops", counted.flops},
               {"bytes", counted.bytes},
               {"launches", counted.launches},
               {"bytes_to_device", input_bytes(epoch, step)},
               {"footprint_bytes", footprint_bytes(epoch, step)},
               {"operations", Json::array()}};
  for (const Op& op : step.ops) {
    json["operations"].push_back(operation_json(epoch, op));
  }
  return json;
}

/// Whether one process runs Workloads in that mode, which comes to no other.
bool is_counted(const RowSpec& mode, const Arguments& arguments) {
  const Execution execution = options_of(mode).execution;
  return makes_sense(mode, arguments.loss_every_step) && execution != Execution::automatic &&
         !facts_of(execution).on_ranks_alone && (!counts_a_pass(arguments) || is_of_passes(mode));
}

/// By execution and placement.
Json gpu_launches(const Backend& gpu, const Workload& epoch, const Arguments& arguments) {
  Json json = Json::object();
  for (const RowSpec& mode : every_gpu_mode()) {
    if (!is_counted(mode, arguments)) {
      continue;
    }
    CompileOptions options = options_of(mode);
    options.precision = arguments.precisions.front();
    options.loss_every_step = arguments.loss_every_step;
    try {
      json[text_of(mode, &RowSpec::execution)][text_of(mode, &RowSpec::placement)] =
          gpu.estimate(gpu.optimize(epoch, options), options).launches;
    } catch (const Unsupported&) {
      if (!facts_of(options.execution).in_one_kernel) {  // which takes few networks
        throw;
      }
    }
  }
  return json;
}

/// By device what `count` says of its backend; one that lacks an operation or the precision says
/// nothing.
Json by_device(const std::function<Json(const BackendKind& kind, const Backend& planned)>& count) {
  Json json = Json::object();
  for (const BackendKind& kind : backends()) {
    try {
      json[kind.name] = count(kind, *kind.describe(""));
    } catch (const Unsupported&) {
      // nothing is left to say
    }
  }
  return json;
}

/// On a GPU by execution and placement too: what a row's counter of that name says.
Json device_launches(const Workload& epoch, const Arguments& arguments) {
  return by_device([&](const BackendKind& kind, const Backend& planned) {
    return kind.has_threads ? Json(planned.estimate(planned.optimize(epoch), {}).launches)
                            : gpu_launches(planned, epoch, arguments);
  });
}

/// What training takes of each device's memory with all rows there, eagerly.
Json device_bytes(const Workload& epoch, const Arguments& arguments) {
  const CompileOptions options{.precision = arguments.precisions.front()};
  return by_device([&](const BackendKind& kind, const Backend& planned) -> Json {
    const Workload own = planned.optimize(epoch, options);
    if (!kind.has_own_memory) {
      return {{"bytes", planned.plan(own, options)->bytes()}};
    }
    const Estimate asked = planned.estimate(own, options);
    return {{"bytes", asked.bytes}, {"workspace_bytes", asked.workspace_bytes}};
  });
}

Json epoch_json(const Workload& epoch, const Arguments& arguments) {
  const Cost counted = cost(epoch);
  double to_device = 0;
  for (const Run& run : epoch.order) {
    to_device +=
        static_cast<double>(input_bytes(epoch, epoch.steps[static_cast<std::size_t>(run.step)]));
  }
  return {
      {"flops", counted.flops},           {"bytes", counted.bytes},
      {"products", product_count(epoch)}, {"launches", counted.launches},
      {"bytes_to_device", to_device},     {"device_launches", device_launches(epoch, arguments)}};
}

void require_one_network(const Arguments& arguments) {
  const auto require = [](bool condition, const std::string& what) {
    if (!condition) {
      throw UsageError("--cost counts one network: " + what);
    }
  };
  require(!arguments.data, "give the number of rows with --rows=N instead of --data");
  require(arguments.tasks.size() == 1,
          "name it with --mlp=IN,...,CLASSES, --network=FILE.json or --model=NAME");
  require(arguments.batches.size() <= 1, "give one batch size with --batch=N");
  require(arguments.precisions.size() == 1, "give one --precision");
  require(arguments.accumulate.size() == 1, "give one --accumulate");
  require(arguments.copies == std::vector<std::int64_t>{1}, "leave out --copies");
}

}  // namespace

Json cost_json(const Arguments& arguments) {
  require_one_network(arguments);
  const Task& task = arguments.tasks.front();
  const bool is_pass = counts_a_pass(arguments);
  const std::int64_t batch = batches_of(arguments, task.batch).front();
  const TrainingOptions training{.rows = is_pass ? batch : task.rows,
                                 .batch = is_pass ? batch : std::min(batch, task.rows),
                                 .optimizer = task.optimizer,
                                 .accumulate = arguments.accumulate.front(),
                                 .precision = arguments.precisions.front()};
  try {
    // The order of the epoch, in three arrangements.
    bench::require_memory(arguments,
                          3.0 * static_cast<double>(training.rows) /
                              static_cast<double>(training.batch) * sizeof(Run),
                          "to count the steps of an epoch of " + task.model.name);
    const Workload epoch = is_pass ? forward_pass(task.model, training.batch, training.precision)
                                   : training_epoch(task.model, training);
    Json json = {{"model", task.model.name},
                 {"params", parameter_count(epoch)},
                 {"batch", training.batch},
                 {"rows", training.rows},
                 {"steps", epoch.order.size()},
                 {"logits", training.rows * logits_of_a_sample(task.model)},
                 {"precision", to_string(training.precision)},
                 {"accumulate", training.accumulate}};
    json["epoch"] = epoch_json(epoch, arguments);
    if (is_pass) {
      json["epoch"]["bytes_from_device"] = bytes(epoch[find(epoch, "outputs")]);
    } else {
      json["optimizer"] = optimizer_label(training.optimizer);
    }
    json["step"] = step_json(epoch);
    json["device_bytes"] = device_bytes(epoch, arguments);
    return json;
  } catch (const std::overflow_error& error) {
    throw UsageError("--cost: " + task.model.name + ": " + error.what());
  } catch (const OutOfMemory& error) {
    throw UsageError(std::string("--cost: ") + error.what());
  }
}

// ---- Fingerprints

std::string network_fingerprint(const Task& task) {
  return hexadecimal(fingerprint(describe(task).dump()));
}

namespace {

/// Of the networks that the command line asks for, by name.
std::map<std::string, std::string> network_fingerprints(const Arguments& arguments) {
  std::map<std::string, std::string> found;
  for (const std::vector<Task>* tasks : {&arguments.tasks, &arguments.minibatch_tasks}) {
    for (const Task& task : *tasks) {
      if (std::string& own = found[task.model.name]; own.empty()) {
        own = network_fingerprint(task);
      }
    }
  }
  return found;
}

}  // namespace

void note_networks(const Arguments& arguments, Rows& rows) {
  const std::map<std::string, std::string> known = network_fingerprints(arguments);
  for (const std::string& name : rows.names()) {
    Row& row = rows[name];
    const auto own = known.find(row.spec.model.value_or(""));
    if (row.network.empty() && own != known.end()) {
      row.network = own->second;
    }
  }
}

// ---- The context of a result file

namespace {

/// Those that may be trained, whole, each once: docs/networks.md.
Json networks_json(const Arguments& arguments) {
  std::set<std::string> known;
  Json json = Json::array();
  for (const std::vector<Task>* tasks : {&arguments.tasks, &arguments.minibatch_tasks}) {
    for (const Task& task : *tasks) {
      if (known.insert(task.model.name).second) {
        json.push_back(describe(task));
      }
    }
  }
  return json;
}

/// Series of networks of growing size, by name: `of_own` and `of_family` say what of them.
template <class OfOwn, class OfFamily>
Json ladders_json(const Arguments& arguments, OfOwn of_own, const OfFamily& of_family) {
  Json json = Json::object();
  for (const OwnLadder& own : arguments.ladders) {
    json[own.name] = own.*of_own;
  }
  for (const Family& family : catalogue()) {
    if (!family.ladder.empty()) {
      json[family.ladder] = of_family(family);
    }
  }
  return json;
}

}  // namespace

Json context_json(const Arguments& arguments, const std::vector<std::string>& command,
                  const Devices& devices) {
  Json context = context_json(command, arguments.sweep.name, arguments.effort, devices);
  Json& crossover = context["crossover"];
  Json& configuration = crossover["configuration"];
  const ThreadSettings threads = thread_settings();
  configuration["openmp"] = {{"wait_policy", threads.wait_policy},
                             {"binding", threads.binding},
                             {"places", threads.places}};
  configuration["flush_to_zero"] = threads.flush_denormals;
  configuration["planned_memory_bytes"] = planned_memory_bytes(arguments);
  configuration["data"] = arguments.data ? without_folders(*arguments.data) : "generated";
  if (arguments.data) {
    configuration["data_fingerprint"] = fingerprint_of_file(*arguments.data);
  }
  crossover["networks"] = networks_json(arguments);
  crossover["network_fingerprints"] = network_fingerprints(arguments);
  crossover["ladders"] = ladders_json(arguments, &OwnLadder::networks,
                                      [](const Family& family) { return family.names; });
  // In which their networks train unless another batch is asked for.
  crossover["ladder_batches"] =
      ladders_json(arguments, &OwnLadder::batch,
                   [](const Family& family) { return family.make(family.names.front()).batch; });
  for (const auto& [key, value] : arguments.more_context) {
    context.emplace(key, value);  // our own fields stay
  }
  return context;
}

// ---- What a run and other programs ask

namespace {

/// What --cost says of the row's network, of one copy, at its batch (of a family that trains no
/// epochs, of a batch alone), the network itself, and what its data are called.
Json network_facts(Arguments arguments, const RowSpec& spec) {
  const std::string& model = value_of(spec, &RowSpec::model);
  const std::int64_t batch = value_of(spec, &RowSpec::batch);
  const bool is_epoch = family_of(spec).trains == Trains::epochs;
  arguments.tasks = {find_task(arguments, model).value()};
  arguments.tasks.front().rows = is_epoch ? arguments.tasks.front().rows : batch;
  arguments.batches = {batch};
  arguments.precisions = {Precision::f32};
  arguments.accumulate = {1};
  arguments.copies = {1};
  arguments.families.clear();  // a pass is counted beside what trains
  Json json = cost_json(arguments);
  json["pass"] = {{"flops", cost(forward_pass(arguments.tasks.front().model, batch)).flops}};
  json["network"] = describe(arguments.tasks.front().model);
  json["data"] = arguments.tasks.front().generate(1).source;
  return json;
}

}  // namespace

NetworkFacts network_facts(const Arguments& arguments) {
  return {
      .sample =
          [&arguments](const std::string& model) {
            const std::optional<Task> task = find_task(arguments, model);
            return task ? task->model.sample : Shape();
          },
      .network_facts = [&arguments](const RowSpec& row) { return network_facts(arguments, row); },
      .repetitions =
          [&arguments](const BenchmarkFamily& family) {
            return arguments.repetitions ? 0 : arguments.sweep.repetitions_of(family.trains);
          }};
}

Ladders ladders_of(const std::vector<Family>& networks) {
  return {.of = [networks](const std::string& model) { return ladder_of(model, networks); },
          .sizes = [networks](const std::string& ladder) { return sizes_of(ladder, networks); }};
}

void add_size(const std::string& model, const Arguments& arguments, Devices& devices, Rows& rows,
              const std::vector<Family>& networks) {
  if (const auto task = find_task(arguments, model, /*of_steps=*/false, networks)) {
    Arguments own = arguments;
    own.tasks = {*task};
    register_epochs(own, devices, rows);
    note_networks(own, rows);
  }
}

}  // namespace crossover::bench
