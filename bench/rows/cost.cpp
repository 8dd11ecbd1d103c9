// SPDX-License-Identifier: Apache-2.0
#include "rows/cost.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "command_line/networks.h"
#include "crossover/backend.h"
#include "crossover/cost.h"
#include "crossover/executions.h"
#include "crossover/product.h"
#include "crossover/training.h"
#include "rows/counters.h"
#include "rows/device.h"
#include "rows/work.h"

namespace crossover::bench {
namespace {

using Json = nlohmann::ordered_json;

bool counts_a_pass(const Arguments& arguments) {
  return arguments.families == std::vector<std::string>{"Forward"};
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
bool is_counted(const Configuration& mode, const Arguments& arguments) {
  const Execution execution = options_of(mode).execution;
  return makes_sense(mode, arguments.loss_every_step) && execution != Execution::automatic &&
         !facts_of(execution).on_ranks_alone && (!counts_a_pass(arguments) || is_of_passes(mode));
}

/// By execution and placement.
Json gpu_launches(const Workload& epoch, const Arguments& arguments) {
  Json json = Json::object();
  const auto gpu = make_planned_gpu();
  for (const Configuration& mode : every_gpu_mode({"execution", "data"})) {
    if (!is_counted(mode, arguments)) {
      continue;
    }
    CompileOptions options = options_of(mode);
    options.precision = arguments.precisions.front();
    options.loss_every_step = arguments.loss_every_step;
    try {
      json[value_of(mode, "execution")][value_of(mode, "data")] =
          gpu->estimate(gpu->optimize(epoch, options), options).launches;
    } catch (const Unsupported&) {
      if (options.execution != Execution::persistent) {  // which takes few networks
        throw;
      }
    }
  }
  return json;
}

/// By device, on a GPU by execution and placement too: what a row's counter of that name says. A
/// backend that lacks an operation says nothing.
Json device_launches(const Workload& epoch, const Arguments& arguments) {
  Json json = Json::object();
  try {
    const auto cpu = make_cpu_backend();
    json["cpu"] = cpu->estimate(cpu->optimize(epoch), {}).launches;
  } catch (const Unsupported&) {
    // nothing is left to say
  }
  try {
    json["cuda"] = gpu_launches(epoch, arguments);
  } catch (const Unsupported&) {
    // nothing is left to say
  }
  return json;
}

/// What training takes of each device's memory with all rows there, eagerly; a backend that lacks
/// an operation or the precision says nothing.
Json device_bytes(const Workload& epoch, const Arguments& arguments) {
  Json json = Json::object();
  const CompileOptions options{.precision = arguments.precisions.front()};
  try {
    const auto cpu = make_cpu_backend();
    json["cpu"] = {{"bytes", cpu->plan(cpu->optimize(epoch, options), options)->bytes()}};
  } catch (const Unsupported&) {
    // nothing is left to say
  }
  try {
    const auto gpu = make_planned_gpu();
    const Estimate asked = gpu->estimate(gpu->optimize(epoch, options), options);
    json["cuda"] = {{"bytes", asked.bytes}, {"workspace_bytes", asked.workspace_bytes}};
  } catch (const Unsupported&) {
    // nothing is left to say
  }
  return json;
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

}  // namespace crossover::bench
