// SPDX-License-Identifier: Apache-2.0
#include "rows/target.h"

#include <algorithm>
#include <stdexcept>

namespace crossover::bench {

Device* find_device(const Configuration& row, Devices& devices) {
  const std::string name = value_or_unsaid(row, "device");
  const auto at = std::find_if(devices.all.begin(), devices.all.end(),
                               [&](const Device& device) { return device.name() == name; });
  return at == devices.all.end() ? nullptr : &*at;
}

Device& device_of(const Configuration& row, Devices& devices) {
  Device* const device = find_device(row, devices);
  if (device == nullptr) {
    throw std::out_of_range("this worker has no device '" + value_of(row, "device") + "'");
  }
  return *device;
}

Target target_of(const Configuration& row, Devices& devices) {
  Target target{.device = &device_of(row, devices),
                .ranks = static_cast<int>(number_of(row, "ranks")),
                .loader = static_cast<int>(number_of(row, "loader")),
                .bucket_bytes = number_of(row, "bucket"),
                .joined = devices.ranks,
                .options = options_of(row),
                .row = row};
  if (target.device->is_host) {
    target.warnings = doubts_about_threads(target.options.threads, target.ranks, target.loader);
    target.counters["cpu_threads"] = target.options.threads;
  } else if (target.ranks > 1) {
    target.warnings = doubts_about_gpus();
  }
  if (target.ranks > 1) {
    target.counters["ranks"] = target.ranks;
  }
  return target;
}

std::vector<Configuration> on_devices(const Configuration& what, const Devices& devices,
                                      const std::vector<int>& threads,
                                      const std::vector<Configuration>& cpu_modes,
                                      const std::vector<Configuration>& gpu_modes) {
  std::vector<Configuration> rows;
  const auto add = [&](const Device& device, const Configuration& mode) {
    rows.push_back(joined(joined(what, {{"device", device.name()}}), mode));
  };
  for (const int count : threads) {
    for (const Configuration& mode : cpu_modes) {
      add(devices.all.front(), joined(mode, {{"cpu_threads", std::to_string(count)}}));
    }
  }
  for (const Device& gpu : devices.gpus()) {
    for (const Configuration& mode : gpu_modes) {
      add(gpu, mode);
    }
  }
  return rows;
}

}  // namespace crossover::bench
