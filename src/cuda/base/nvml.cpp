// SPDX-License-Identifier: Apache-2.0
// The types and numbers are those of nvml.h, which a toolkit need not have.
#include "nvml.h"

#include <dlfcn.h>

#include <array>
#include <cstdint>
#include <utility>

namespace crossover::cuda {
namespace {

using Handle = void*;
constexpr int success = 0;
constexpr unsigned clock_sm = 1;
constexpr unsigned clock_memory = 2;
constexpr unsigned temperature_gpu = 0;

struct Memory {
  unsigned long long total, free, used;
};

constexpr std::array<std::pair<std::uint64_t, const char*>, 8> reasons{{
    {0x2, "clocks set by hand"},
    {0x4, "power cap"},
    {0x8, "hardware slowdown"},
    {0x10, "sync boost"},
    {0x20, "temperature"},
    {0x40, "temperature (hardware)"},
    {0x80, "power brake"},
    {0x100, "display clocks"},
}};

}  // namespace

struct Nvml::Library {
  void* file = nullptr;
  Handle gpu = nullptr;

  Library() = default;
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() {
    if (file == nullptr) {
      return;
    }
    if (gpu != nullptr) {
      static_cast<void>(call("nvmlShutdown"));
    }
    dlclose(file);
  }

  /// Whether there is such a function and it succeeds.
  template <class... Parameters>
  [[nodiscard]] bool call(const char* name, Parameters... parameters) const {
    using Function = int (*)(Parameters...);
    const auto function = reinterpret_cast<Function>(dlsym(file, name));
    return function != nullptr && function(parameters...) == success;
  }

  template <class Number, class Result, class... Parameters>
  [[nodiscard]] std::optional<Result> ask(const char* name, Parameters... parameters) const {
    Number number{};
    if (!call(name, gpu, parameters..., &number)) {
      return std::nullopt;
    }
    return static_cast<Result>(number);
  }

  [[nodiscard]] std::optional<int> clock(const char* name, unsigned of) const {
    return ask<unsigned, int>(name, of);
  }
};

Nvml::Nvml(const std::string& pci_bus_id) {
  auto library = std::make_unique<Library>();
  // The second: where containers mount the driver, which not all of them tell the loader.
  for (const char* name : {"libnvidia-ml.so.1", "/usr/local/nvidia/lib64/libnvidia-ml.so.1"}) {
    if (library->file == nullptr) {
      library->file = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
  }
  if (library->file == nullptr || !library->call("nvmlInit_v2")) {
    return;
  }
  Handle gpu = nullptr;
  if (!library->call("nvmlDeviceGetHandleByPciBusId_v2", pci_bus_id.c_str(), &gpu)) {
    static_cast<void>(library->call("nvmlShutdown"));
    return;
  }
  library->gpu = gpu;
  library_ = std::move(library);
}

Nvml::~Nvml() = default;

GpuFacts Nvml::facts() const {
  GpuFacts facts;
  if (!library_) {
    return facts;
  }
  std::array<char, 96> version{};
  if (library_->call("nvmlSystemGetDriverVersion", version.data(),
                     static_cast<unsigned>(version.size() - 1))) {
    facts.driver = version.data();
  }
  Memory memory{};
  if (library_->call("nvmlDeviceGetMemoryInfo", library_->gpu, &memory)) {
    facts.memory_bytes = static_cast<std::int64_t>(memory.total);
  }
  facts.sm_clock_max_mhz = library_->clock("nvmlDeviceGetMaxClockInfo", clock_sm);
  facts.memory_clock_max_mhz = library_->clock("nvmlDeviceGetMaxClockInfo", clock_memory);
  if (const auto milliwatts = library_->ask<unsigned, double>("nvmlDeviceGetEnforcedPowerLimit")) {
    facts.power_limit_watts = *milliwatts / 1e3;
  }
  facts.persistence_mode = library_->ask<int, bool>("nvmlDeviceGetPersistenceMode");
  int ecc = 0;
  int ecc_after_a_restart = 0;
  if (library_->call("nvmlDeviceGetEccMode", library_->gpu, &ecc, &ecc_after_a_restart)) {
    facts.ecc = ecc != 0;
  }
  return facts;
}

GpuState Nvml::state() const {
  GpuState state;
  if (!library_) {
    return state;
  }
  state.sm_clock_mhz = library_->clock("nvmlDeviceGetClockInfo", clock_sm);
  state.memory_clock_mhz = library_->clock("nvmlDeviceGetClockInfo", clock_memory);
  state.temperature_celsius =
      library_->ask<unsigned, int>("nvmlDeviceGetTemperature", temperature_gpu);
  if (const auto millijoules =
          library_->ask<unsigned long long, double>("nvmlDeviceGetTotalEnergyConsumption")) {
    state.joules = *millijoules / 1e3;  // of Volta and later
  }
  using Bits = unsigned long long;
  auto bits = library_->ask<Bits, Bits>("nvmlDeviceGetCurrentClocksEventReasons");
  if (!bits) {  // its name before
    bits = library_->ask<Bits, Bits>("nvmlDeviceGetCurrentClocksThrottleReasons");
  }
  for (const auto& [bit, reason] : reasons) {
    if ((bits.value_or(0) & bit) != 0) {
      state.throttle_reasons.emplace_back(reason);
    }
  }
  return state;
}

}  // namespace crossover::cuda
