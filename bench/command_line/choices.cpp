// SPDX-License-Identifier: Apache-2.0
#include "command_line/choices.h"

#include "crossover/executions.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace crossover::bench {
namespace {

/// Each of the modes with each of the values.
std::vector<RowSpec> combined(const std::vector<RowSpec>& modes, const Axis& axis,
                              const std::vector<std::string>& values) {
  std::vector<RowSpec> all;
  for (const RowSpec& mode : modes) {
    for (const std::string& value : values) {
      all.push_back(mode);
      axis.write(all.back(), value);
    }
  }
  return all;
}

/// Threads are numbers, which depend on the machine: device.h.
bool is_of_modes(const Axis& axis, AxisDevices device) {
  return axis.role == AxisRole::how && includes(axis.devices, device) && !axis.values.empty();
}

/// With the chosen values of the axes that are missing.
std::vector<RowSpec> completed(std::vector<RowSpec> modes, AxisDevices device,
                               const Choices& choices, bool training) {
  for (const Axis& axis : axes()) {
    if (!is_of_modes(axis, device) || (!training && axis.training_only)) {
      continue;
    }
    std::vector<RowSpec> with_it;
    for (const RowSpec& mode : modes) {
      const std::vector<RowSpec> own =
          axis.is_said(mode) ? std::vector<RowSpec>{mode}
                             : combined({mode}, axis, choices.on(axis, device, training));
      with_it.insert(with_it.end(), own.begin(), own.end());
    }
    modes = std::move(with_it);
  }
  return modes;
}

std::vector<RowSpec> training_modes(AxisDevices device, const Choices& choices,
                                    const std::vector<RowSpec>& swept) {
  const auto has_chosen = [&](const RowSpec& mode) {
    return std::ranges::any_of(axes(), [&](const Axis& axis) {
      return axis.is_said(mode) && choices.has_on(axis, device, true);
    });
  };
  std::vector<RowSpec> modes = has_chosen(swept.front()) ? std::vector<RowSpec>(1) : swept;
  std::erase_if(modes, has_chosen);  // what a flag decides no mode does
  modes = completed(std::move(modes), device, choices, true);
  if (device == AxisDevices::cpu) {
    return modes;
  }
  const bool loss_every_step = choices.of(&RowSpec::loss_every_step).front();
  std::vector<RowSpec> left;
  std::ranges::copy_if(modes, std::back_inserter(left),
                       [&](const RowSpec& mode) { return makes_sense(mode, loss_every_step); });
  if (left.empty()) {
    const bool copies = facts_of(options_of(modes.front()).execution).in_one_kernel;
    throw UsageError(
        "--execution=" + text_of(modes.front(), &RowSpec::execution) +
        (copies ? " needs --loss=epoch: one kernel for an epoch reports no losses between its steps"
                : " needs --placement=resident and --loss=epoch: what runs a whole epoch by "
                  "itself neither copies batches nor reports losses between its steps"));
  }
  return left;
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
      value = std::to_string(parse_number(flag.name, part, flag.least, flag.most));
    } else if (!axis.values.empty()) {
      value = axis.values[parse_choice(flag.name, text, part, axis.values)];
    }
    if (!contains(values, value)) {
      values.push_back(value);  // said twice, it is still one
    }
  }
}

std::vector<std::string> Choices::of(const Axis& axis) const {
  if (const auto given = given_.find(axis.key); given != given_.end()) {
    return given->second;
  }
  if (!axis.unsaid.empty()) {
    return {axis.unsaid};
  }
  return axis.values.empty() ? std::vector<std::string>{} : std::vector{axis.values.front()};
}

std::vector<std::string> Choices::given_on(const Axis& axis, AxisDevices device,
                                           bool training) const {
  const auto given = given_.find(axis.key);
  if (given == given_.end()) {
    return {};
  }
  const std::vector<std::string> its_own = axis.values_on(device, training);
  std::vector<std::string> found = given->second;
  std::erase_if(found, [&](const std::string& value) { return !contains(its_own, value); });
  return found;
}

bool Choices::has_on(const Axis& axis, AxisDevices device, bool training) const {
  return !given_on(axis, device, training).empty();
}

std::vector<std::string> Choices::on(const Axis& axis, AxisDevices device, bool training) const {
  std::vector<std::string> given = given_on(axis, device, training);
  if (given.empty()) {
    given = {axis.unsaid.empty() ? axis.values_on(device, training).front() : axis.unsaid};
  }
  return given;
}

std::vector<Flag> axis_flags(Choices& to) {
  std::vector<Flag> flags;
  for (const Axis& axis : axes()) {
    if (!axis.flag.name.empty()) {
      // By its key: another program's axes move those of the table.
      flags.push_back({axis.flag.name, axis.flag.value, axis.flag.help,
                       [&to, key = axis.key](const std::string& /*flag*/, const std::string& text) {
                         to.take(find_axis(key), text);
                       }});
    }
  }
  return flags;
}

DeviceModes modes_on(AxisDevices device, const Choices& choices,
                     const std::vector<RowSpec>& swept) {
  return {.of_training = training_modes(device, choices, swept),
          .of_operations = completed({RowSpec()}, device, choices, false)};
}

std::vector<RowSpec> every_gpu_mode() {
  std::vector<RowSpec> modes{RowSpec()};
  for (const Axis& axis : {axis_of(&RowSpec::execution), axis_of(&RowSpec::placement)}) {
    modes = combined(modes, axis, axis.values_on(AxisDevices::gpu, true));
  }
  return modes;
}

bool makes_sense(const RowSpec& mode, bool loss_every_step) {
  const CompileOptions options = options_of(mode);
  const ExecutionFacts& facts = facts_of(options.execution);
  return !facts.of_whole_order ||
         ((options.placement == Placement::resident || facts.in_one_kernel) && !loss_every_step);
}

bool is_of_passes(const RowSpec& mode) {
  const CompileOptions options = options_of(mode);
  return !facts_of(options.execution).of_whole_order &&
         options.placement != Placement::pinned_async;
}

}  // namespace crossover::bench
