// SPDX-License-Identifier: Apache-2.0
// parse() on any command line, one argument per line: arguments within their limits that the
// command line made from their axes gives again, or a UsageError that bench says in one line.
#include "../../bench/command_line/arguments.h"

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "../../bench/base/say.h"
#include "../../bench/command_line/networks.h"
#include "check.h"
#include "crossover/training.h"

namespace crossover {

// Of the networks only the names are wanted here, not how many parameters they have.
Workload training_epoch(const Model&, const TrainingOptions&) { return {}; }
std::int64_t parameter_count(const Workload&) { return 0; }
std::vector<Id> tensors_of(const Workload&, Role) { return {}; }

}  // namespace crossover

namespace crossover::bench {

namespace {

using fuzz::require;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line);
  }
  return lines;
}

/// What say() writes to standard error.
std::string said(const std::string& text) {
  std::ostringstream line;
  std::streambuf* const before = std::cerr.rdbuf(line.rdbuf());
  say(text);
  std::cerr.rdbuf(before);
  return line.str();
}

void require_said_in_one_line(const UsageError& error, const std::vector<std::string>& words) {
  const std::string what = error.what();
  require(!what.empty(), "an error without a message");
  // What stands in the message of control characters is the user's own.
  const bool has_control = std::ranges::any_of(
      words, [](const std::string& word) { return std::ranges::any_of(word, fuzz::is_control); });
  if (!has_control) {
    fuzz::require_line(what);
  }
  const std::string line = said(what);
  require(line.starts_with("bench: ") && line.ends_with("\n"), "not bench's line: " + line);
  fuzz::require_line(std::string_view(line).substr(0, line.size() - 1));
}

void require_within(std::int64_t value, std::int64_t least, std::int64_t most, const char* what) {
  require(value >= least && value <= most, what + (" " + std::to_string(value)));
}

/// Each mode can be told as text; no mode stands there twice.
void require_modes(const std::vector<RowSpec>& modes) {
  require(!modes.empty(), "no mode");
  std::set<std::string> seen;
  for (const RowSpec& mode : modes) {
    const nlohmann::ordered_json told = configuration_json(mode);
    const std::string words = told.dump();
    require(seen.insert(words).second, "twice the mode " + words);
    require(spec_in(told) == mode, "not the mode " + words);
  }
}

void require_networks(const std::vector<Task>& tasks) {
  for (const Task& task : tasks) {
    require(!task.model.layers.empty() && !task.model.name.empty(), "an empty network");
    require_within(task.rows, 1, largest_size, "rows");
    require_within(task.batch, 1, largest_size, "batch");
    const bool has_classes = task.model.loss == LossFunction::cross_entropy;
    require_within(task.model.classes, has_classes ? 2 : 1, most_classes, "classes");
    std::visit(
        [](const auto& o) { require(o.learning_rate >= 0 && o.learning_rate <= 1e30, "rate"); },
        task.optimizer);
  }
}

void require_limits(const Arguments& arguments) {
  for (const std::int64_t batch : arguments.batches) {
    require_within(batch, 1, largest_size, "batch");
  }
  for (const int threads : arguments.threads) {
    require_within(threads, 1, axis_of(&RowSpec::threads).flag.most, "threads");
  }
  for (const std::int64_t accumulate : arguments.accumulate) {
    require_within(accumulate, 1, largest_size, "accumulate");
  }
  require_within(arguments.memory_limit_bytes.value_or(0), 0,
                 std::numeric_limits<std::int64_t>::max(), "memory limit");
  const double budget = arguments.budget_seconds.value_or(1);
  require(budget > 0 && budget <= 1e7, "budget");
  require(!arguments.resume || arguments.out, "a file to go on with");
  require(!arguments.families.empty() && !arguments.precisions.empty(), "nothing to measure");
  for (const DeviceModes& modes : {arguments.cpu_modes, arguments.gpu_modes}) {
    require_modes(modes.of_training);
    require_modes(modes.of_operations);
  }
  require_networks(arguments.tasks);
  require_networks(arguments.minibatch_tasks);
  for (const std::string& flag : arguments.passed_on) {
    require(flag.starts_with("--benchmark_") || flag.starts_with("--v"), "passed on: " + flag);
  }
}

/// The words of no axis, and the axes as they were understood.
std::vector<std::string> printed(const std::vector<std::string>& words,
                                 const Arguments& arguments) {
  std::vector<std::string> again;
  for (const std::string& word : words) {
    const std::string name = word.substr(0, word.find('='));
    if (std::ranges::none_of(axes(), [&](const Axis& axis) { return axis.flag.name == name; })) {
      again.push_back(word);
    }
  }
  for (const Axis& axis : axes()) {
    if (arguments.choices.has(axis)) {
      again.push_back(axis.flag.name + "=" + join(arguments.choices.of(axis), ","));
    }
  }
  return again;
}

std::vector<std::string> names(const std::vector<Task>& tasks) {
  std::vector<std::string> all;
  for (const Task& task : tasks) {
    all.push_back(task.model.name + " " + std::to_string(task.rows) + " " +
                  optimizer_label(task.optimizer));
  }
  return all;
}

void require_same(const Arguments& one, const Arguments& other) {
  require(one.action == other.action && one.sweep.name == other.sweep.name &&
              one.uses == other.uses && one.data == other.data && one.out == other.out &&
              one.memory_limit_bytes == other.memory_limit_bytes && one.resume == other.resume &&
              one.budget_seconds == other.budget_seconds && one.passed_on == other.passed_on &&
              one.filter == other.filter && one.repetitions == other.repetitions,
          "flags of no axis");
  require(one.families == other.families && one.precisions == other.precisions &&
              one.batches == other.batches && one.threads == other.threads &&
              one.accumulate == other.accumulate && one.loss_every_step == other.loss_every_step,
          "axes of what is computed");
  require(one.cpu_modes == other.cpu_modes && one.gpu_modes == other.gpu_modes, "modes");
  require(names(one.tasks) == names(other.tasks) &&
              names(one.minibatch_tasks) == names(other.minibatch_tasks),
          "networks");
}

void look_at(const std::vector<std::string>& words) {
  Arguments arguments;
  try {
    arguments = parse(words);
  } catch (const UsageError& error) {
    require_said_in_one_line(error, words);
    return;
  }
  require_limits(arguments);
  require_same(arguments, parse(printed(words, arguments)));
}

}  // namespace
}  // namespace crossover::bench

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace crossover::bench;
  look_at(lines_of(std::string(reinterpret_cast<const char*>(data), size)));
  return 0;
}
