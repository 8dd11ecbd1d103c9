// SPDX-License-Identifier: Apache-2.0
#include "rows/devices.h"

#include <algorithm>
#include <vector>

#include "crossover/machine.h"

namespace crossover::bench {

namespace {

/// Pointers to those of `all`, which is const or is not.
template <class All>
auto with_own_memory(All& all) {
  std::vector<decltype(all.data())> those;
  for (auto& device : all) {
    if (device.has_own_memory()) {
      those.push_back(&device);
    }
  }
  return those;
}

}  // namespace

std::vector<Device*> Devices::gpus() { return with_own_memory(all); }
std::vector<const Device*> Devices::gpus() const { return with_own_memory(all); }

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
