// SPDX-License-Identifier: Apache-2.0
#include "rows/energy.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include "base/spent.h"

namespace crossover::bench {
namespace {

namespace files = std::filesystem;
constexpr double microjoule = 1e-6;

std::string first_line(const files::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

double number_in(const files::path& path) {
  errno = 0;
  std::ifstream file(path);
  double number = 0;
  if (!(file >> number)) {
    const std::string why = errno == 0 ? "it holds no number" : std::strerror(errno);
    throw std::runtime_error(path.string() + " can't be read (" + why +
                             (errno == EACCES ? "): sudo chmod a+r it, or run as root" : ")"));
  }
  return number;
}

}  // namespace

std::vector<Meter> powercap_meters(const std::string& root) {
  std::vector<files::path> zones;
  std::error_code error;
  for (const auto& entry : files::directory_iterator(root, error)) {
    const std::string folder = entry.path().filename();
    const std::string name = first_line(entry.path() / "name");
    if (folder.starts_with("intel-rapl:") && (name.starts_with("package") || name == "dram")) {
      zones.push_back(entry.path());
    }
  }
  if (zones.empty()) {
    throw std::runtime_error("this machine counts no energy of its processors (" + root +
                             " has no package of RAPL): virtual machines have none; "
                             "--meter=COMMAND reads another meter");
  }
  std::ranges::sort(zones);
  std::vector<Meter> meters;
  for (const files::path& zone : zones) {
    meters.push_back(
        {.name = "rapl " + first_line(zone / "name"),
         .joules = [energy = zone / "energy_uj"] { return number_in(energy) * microjoule; },
         .wraps_joules = number_in(zone / "max_energy_range_uj") * microjoule});
    static_cast<void>(meters.back().joules());
  }
  return meters;
}

Meter command_meter(const std::string& command) {
  const auto joules = [command] {
    std::FILE* const pipe = popen(command.c_str(), "re");  // NOLINT(cert-env33-c): the user's
    std::array<char, 128> text{};
    const bool has_line =
        pipe != nullptr && std::fgets(text.data(), static_cast<int>(text.size()), pipe) != nullptr;
    const int status = pipe == nullptr ? -1 : pclose(pipe);
    char* end = text.data();
    const double told = std::strtod(text.data(), &end);
    if (!has_line || status != 0 || end == text.data() || !std::isfinite(told)) {
      throw std::runtime_error("--meter=" + command +
                               " must print the joules so far as a number, and end with 0");
    }
    return told;
  };
  return {.name = command, .joules = joules};
}

EnergyWatch::EnergyWatch(const std::string& command) : of_whole_machine_(!command.empty()) {
  try {
    if (of_whole_machine_) {
      meters_.push_back(command_meter(command));
      static_cast<void>(meters_.front().joules());
    } else {
      meters_ = powercap_meters();
    }
  } catch (const std::runtime_error& why) {
    meters_.clear();
    reason_ = why.what();
  }
}

EnergyWatch::Readings EnergyWatch::read(const Device* device) {
  Readings found;
  try {
    for (const Meter& meter : meters_) {
      found.joules.push_back(meter.joules());
    }
  } catch (const std::runtime_error& why) {
    found.joules.clear();
    reason_ = why.what();
  }
  if (device != nullptr) {
    found.of_gpu = device->backend->state().joules;
  }
  found.when = std::chrono::steady_clock::now();
  return found;
}

void EnergyWatch::before(const Device& device) {
  is_host_ = device.is_host;
  before_ = read(&device);
}

void EnergyWatch::after(const Device& device) { after_ = read(&device); }

std::optional<double> EnergyWatch::between(const Readings& first, const Readings& last) const {
  if (first.joules.empty() || first.joules.size() != last.joules.size()) {
    return std::nullopt;
  }
  double sum = 0;
  for (std::size_t i = 0; i < first.joules.size(); ++i) {
    double taken = last.joules[i] - first.joules[i];
    if (taken < 0) {
      const std::optional<double> range = meters_[i].wraps_joules;
      if (!range || taken + *range < 0) {
        return std::nullopt;  // it was set back
      }
      taken += *range;
    }
    sum += taken;
  }
  return sum;
}

void EnergyWatch::count(std::int64_t iterations, nlohmann::ordered_json& counters) const {
  const std::chrono::duration<double> seconds = after_.when - before_.when;
  if (seconds.count() < least_seconds || iterations < 1) {
    return;
  }
  const auto of_one = [&](double joules) { return joules / static_cast<double>(iterations); };
  const std::optional<double> own = between(before_, after_);
  std::optional<double> of_gpu;
  if (!is_host_ && before_.of_gpu && after_.of_gpu && *after_.of_gpu >= *before_.of_gpu) {
    of_gpu = *after_.of_gpu - *before_.of_gpu;
    counters["joules_gpu"] = of_one(*of_gpu);
  }
  if (own) {
    counters[of_whole_machine_ ? "joules_machine" : "joules_cpu"] = of_one(*own);
  }
  if (own && (is_host_ || of_whole_machine_ || of_gpu)) {
    counters["joules"] = of_one(*own + (of_whole_machine_ ? 0 : of_gpu.value_or(0)));
  }
}

std::optional<double> EnergyWatch::idle_watts(double seconds) {
  const Readings first = read(nullptr);
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  const Readings last = read(nullptr);
  const std::optional<double> taken = between(first, last);
  const std::chrono::duration<double> passed = last.when - first.when;
  return taken ? std::optional(*taken / passed.count()) : std::nullopt;
}

nlohmann::ordered_json EnergyWatch::describe() const {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const Meter& meter : meters_) {
    json["meters"].push_back(meter.name);
  }
  if (!reason_.empty()) {
    json["reason"] = reason_;
  }
  return json;
}

std::unique_ptr<EnergyWatch> energy_watch_of(const Arguments& arguments) {
  return arguments.energy ? std::make_unique<EnergyWatch>(arguments.meter) : nullptr;
}

}  // namespace crossover::bench
