// SPDX-License-Identifier: Apache-2.0
#include "rows/devices.h"

#include <algorithm>
#include <vector>

#include "crossover/machine.h"

namespace crossover::bench {

std::vector<Device*> Devices::gpus() {
  std::vector<Device*> found;
  for (Device& device : all) {
    if (device.has_own_memory()) {
      found.push_back(&device);
    }
  }
  return found;
}

std::vector<const Device*> Devices::gpus() const {
  std::vector<const Device*> found;
  for (const Device& device : all) {
    if (device.has_own_memory()) {
      found.push_back(&device);
    }
  }
  return found;
}

Device* Devices::find(const std::string& name) {
  const auto at = std::ranges::find(all, name, &Device::name);
  return at == all.end() ? nullptr : &*at;
}

std::string Devices::gpu_reason() const {
  std::string reasons;
  for (const BackendKind& kind : backends()) {
    if (!kind.has_own_memory) {
      continue;
    }
    const auto why = missing.find(kind.name);
    if (why == missing.end()) {
      return "";
    }
    reasons += (reasons.empty() ? "" : "; ") + why->second;
  }
  return reasons;
}

std::optional<double> Devices::joules_of_gpu() const {
  const std::vector<const Device*> all_gpus = gpus();
  return all_gpus.empty() ? std::nullopt : all_gpus.front()->state().joules;
}

int usable_cores() {
  static const Machine machine = this_machine();
  const double quota = machine.quota.value_or(machine.cores);
  return std::clamp(static_cast<int>(quota), 1, machine.cores);
}

int usable_processors() {
  static const int threads = this_machine().threads;
  return threads;
}

}  // namespace crossover::bench
