// SPDX-License-Identifier: Apache-2.0
#include "choices.h"

#include <algorithm>

namespace crossover::bench {
namespace {

/// Each of the modes with each of the values.
std::vector<Configuration> combined(const std::vector<Configuration>& modes, const std::string& key,
                                    const std::vector<std::string>& values) {
  std::vector<Configuration> all;
  for (const Configuration& mode : modes) {
    for (const std::string& value : values) {
      all.push_back(mode);
      all.back().emplace_back(key, value);
    }
  }
  return all;
}

bool has_key(const Configuration& mode, const std::string& key) {
  return std::any_of(mode.begin(), mode.end(), [&](const auto& pair) { return pair.first == key; });
}

bool is_of_gpu_programs(const Axis& axis) {
  return axis.role == AxisRole::how &&
         (axis.devices == AxisDevices::gpu || axis.devices == AxisDevices::both);
}

/// With the chosen values of the axes that are missing.
std::vector<Configuration> completed(std::vector<Configuration> modes, const Choices& choices,
                                     bool training) {
  for (const Axis& axis : axes()) {
    if (is_of_gpu_programs(axis) && (training || !axis.training_only) &&
        !has_key(modes.front(), axis.key)) {
      modes = combined(modes, axis.key, choices.of(axis.key));
    }
  }
  return modes;
}

}  // namespace

void Choices::take(const Axis& axis, const std::string& text) {
  const AxisFlag& flag = axis.flag;
  const bool takes_many = flag.value.ends_with("...");
  std::vector<std::string>& values = given_[axis.key];
  values.clear();
  for (const std::string& part : takes_many ? split(text) : std::vector{text}) {
    std::string value = part;
    if (flag.most > 0) {
      constexpr std::int64_t least = 1;
      value = std::to_string(parse_number(flag.name, part, least, flag.most));
    } else if (!axis.values.empty()) {
      value = axis.values[parse_choice(flag.name, text, part, axis.values)];
    }
    if (std::find(values.begin(), values.end(), value) == values.end()) {
      values.push_back(value);  // said twice, it is still one
    }
  }
}

std::vector<std::string> Choices::of(const std::string& key) const {
  const Axis& axis = find_axis(key);
  if (const auto given = given_.find(key); given != given_.end()) {
    return given->second;
  }
  if (!axis.unsaid.empty()) {
    return {axis.unsaid};
  }
  return axis.values.empty() ? std::vector<std::string>{} : std::vector{axis.values.front()};
}

std::vector<std::int64_t> Choices::numbers(const std::string& key) const {
  std::vector<std::int64_t> numbers;
  for (const std::string& text : of(key)) {
    numbers.push_back(std::stoll(text));
  }
  return numbers;
}

std::vector<Flag> axis_flags(Choices& to) {
  std::vector<Flag> flags;
  for (const Axis& axis : axes()) {
    if (!axis.flag.name.empty()) {
      flags.push_back({axis.flag.name, axis.flag.value, axis.flag.help,
                       [&to, &axis](const std::string& text) { to.take(axis, text); }});
    }
  }
  return flags;
}

std::vector<Configuration> training_modes(const Choices& choices,
                                          const std::vector<Configuration>& swept) {
  const Configuration& axes_of_sweep = swept.front();
  const bool chosen = std::any_of(axes_of_sweep.begin(), axes_of_sweep.end(),
                                  [&](const auto& pair) { return choices.has(pair.first); });
  std::vector<Configuration> modes = swept;
  if (chosen) {
    modes = {Configuration()};
  }
  modes = completed(std::move(modes), choices, true);
  const bool loss_every_step = options_of({{"loss", choices.of("loss").front()}}).loss_every_step;
  std::erase_if(modes,
                [&](const Configuration& mode) { return !makes_sense(mode, loss_every_step); });
  if (modes.empty()) {
    throw UsageError(
        "--execution=graph-epoch needs --placement=resident and --loss=epoch: a graph of a whole "
        "epoch neither copies batches nor reports losses between its steps");
  }
  return modes;
}

std::vector<Configuration> operation_modes(const Choices& choices) {
  return completed({Configuration()}, choices, false);
}

std::vector<Configuration> every_mode(const std::vector<std::string>& keys) {
  std::vector<Configuration> modes{Configuration()};
  for (const std::string& key : keys) {
    modes = combined(modes, key, find_axis(key).values);
  }
  return modes;
}

bool makes_sense(const Configuration& mode, bool loss_every_step) {
  const CompileOptions options = options_of(mode);
  return options.execution != Execution::graph_epoch ||
         (options.placement == Placement::resident && !loss_every_step);
}

}  // namespace crossover::bench
