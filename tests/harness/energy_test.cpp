// SPDX-License-Identifier: Apache-2.0
// The meters of energy, on made-up trees of powercap: there is no RAPL in a virtual machine.
#include "rows/watches.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace crossover::bench {
namespace {

namespace files = std::filesystem;

class Powercap : public testing::Test {
 protected:
  Powercap() { files::create_directories(root_); }
  ~Powercap() override { files::remove_all(root_); }
  Powercap(const Powercap&) = delete;
  Powercap& operator=(const Powercap&) = delete;

  void zone(const std::string& folder, const std::string& name, const std::string& microjoules) {
    files::create_directories(root_ / folder);
    std::ofstream(root_ / folder / "name") << name << "\n";
    std::ofstream(root_ / folder / "energy_uj") << microjoules << "\n";
    std::ofstream(root_ / folder / "max_energy_range_uj") << "1000000000\n";  // 1000 J
  }

  [[nodiscard]] std::string why_none() const {
    try {
      static_cast<void>(powercap_meters(root_));
    } catch (const std::runtime_error& why) {
      return why.what();
    }
    return "";
  }

  const files::path root_ = files::temp_directory_path() / ("powercap-" + std::to_string(getpid()));
};

TEST_F(Powercap, PackagesAndTheirMemoryAreReadAndNotTheirParts) {
  zone("intel-rapl:0", "package-0", "1500000");
  zone("intel-rapl:0:0", "core", "1000000");
  zone("intel-rapl:0:1", "dram", "250000");
  zone("intel-rapl:1", "package-1", "7000000");
  zone("intel-rapl:2", "psys", "99000000");
  zone("intel-rapl-mmio:0", "package-0", "1500000");  // the same package again
  const auto meters = powercap_meters(root_);
  ASSERT_EQ(meters.size(), 3U);
  std::vector<std::pair<std::string, double>> found;
  for (const Meter& meter : meters) {
    found.emplace_back(meter.name, meter.joules());
    EXPECT_EQ(meter.wraps_joules, 1000);
    EXPECT_EQ(meter.counts, "cpu");
    EXPECT_EQ(meter.resolution_joules, 1e-6);
  }
  EXPECT_EQ(found, (std::vector<std::pair<std::string, double>>{
                       {"rapl package-0", 1.5}, {"rapl dram", 0.25}, {"rapl package-1", 7}}));
}

TEST_F(Powercap, WithoutAnyItSaysWhyAndWhatToDo) {
  EXPECT_NE(why_none().find("has no package of RAPL): virtual machines have none; --meter=COMMAND"),
            std::string::npos);
  zone("intel-rapl:0", "package-0", "locked");
  EXPECT_NE(why_none().find("intel-rapl:0/energy_uj can't be read (it holds no number)"),
            std::string::npos);
}

/// Tells what it was given, one after another.
Meter script(std::vector<double> joules) {
  return {.name = "script",
          .counts = "cpu",
          .joules = [joules = std::move(joules),
                     at = std::size_t{0}]() mutable { return joules.at(at++); },
          .wraps_joules = 1000};
}

constexpr double a_moment = 0.1, for_ever = 1e6;  // seconds

std::optional<double> no_gpu() { return {}; }

double watts(std::vector<double> first, std::vector<double> second) {
  EnergyWatch watch({script(std::move(first)), script(std::move(second))},
                    /*of_whole_machine=*/false);
  return watch.idle_watts(a_moment, no_gpu).of_meters.value_or(-1);
}

TEST(EnergyWatch, SumsMetersAndTakesOneThatBeganAgainForWhatItIs) {
  const double plain = watts({100, 101}, {10, 13});
  EXPECT_GT(plain, 4 / 10.0);  // 4 J, over 0.1 s at least
  EXPECT_LE(plain, 4 / a_moment);
  EXPECT_GT(watts({999, 2}, {10, 10}), 0);    // 3 J, past its end
  EXPECT_EQ(watts({5000, 2}, {10, 10}), -1);  // set back: no energy, not a negative one
}

TEST(EnergyWatch, AnIdleGpuIsApartFromTheMeters) {
  EnergyWatch watch({script({1, 2})}, /*of_whole_machine=*/false);
  const EnergyWatch::Watts both = watch.idle_watts(a_moment, script({50, 57}).joules);
  ASSERT_TRUE(both.of_meters && both.of_gpu);
  EXPECT_GT(*both.of_gpu, *both.of_meters * 6.9);  // 7 J and 1 J over the same time
  EXPECT_LT(*both.of_gpu, *both.of_meters * 7.1);
}

TEST(EnergyWatch, AGpuIsReadWhereNoMeterOfTheProcessorsIs) {
  EnergyWatch watch({}, /*of_whole_machine=*/false);
  const EnergyWatch::Watts alone = watch.idle_watts(a_moment, script({50, 57}).joules);
  EXPECT_FALSE(alone.of_meters);
  EXPECT_GT(alone.of_gpu.value_or(-1), 0);
  EXPECT_FALSE(watch.idle_watts(a_moment, script({57, 50}).joules).of_gpu);  // set back
}

TEST(EnergyWatch, WithoutAnyMeterNobodyWaits) {
  EnergyWatch watch({}, /*of_whole_machine=*/false);
  const EnergyWatch::Watts none = watch.idle_watts(for_ever, no_gpu);
  EXPECT_FALSE(none.of_meters || none.of_gpu);
}

TEST(EnergyWatch, OfALoopThatIsTooShortThereIsNoEnergy) {
  EnergyWatch watch({script({1, 2})}, /*of_whole_machine=*/false);
  const Device cpu;
  watch.before(cpu);
  watch.after(cpu);
  nlohmann::ordered_json counters = nlohmann::ordered_json::object();
  watch.count(1, counters);
  EXPECT_TRUE(counters.empty());
  EXPECT_EQ(watch.describe()["meters"][0]["name"], "script");
}

/// Moves by a joule every so many seconds.
Meter clockwork(const std::string& counts, double update_seconds) {
  return {.name = "clockwork of " + counts,
          .counts = counts,
          .joules =
              [update_seconds] {
                const auto now = std::chrono::steady_clock::now().time_since_epoch();
                return std::floor(std::chrono::duration<double>(now).count() / update_seconds);
              },
          .resolution_joules = 0.5};
}

TEST(EnergyWatch, SeesHowLongEachMeterStandsStill) {
  EnergyWatch watch({clockwork("cpu", 0.02)}, /*of_whole_machine=*/false);
  watch.watch_updates(for_ever, clockwork("gpu", 0.05).joules);
  const nlohmann::ordered_json meters = watch.describe()["meters"];
  ASSERT_EQ(meters.size(), 2U);
  EXPECT_EQ(meters[0]["name"], "clockwork of cpu");
  EXPECT_EQ(meters[0]["resolution_joules"], 0.5);
  EXPECT_EQ(meters[1]["name"], "nvml");
  EXPECT_EQ(meters[1]["counts"], "gpu");
  EXPECT_EQ(meters[1]["resolution_joules"], 1e-3);
  const double cpu = meters[0]["update_seconds"];
  const double gpu = meters[1]["update_seconds"];
  EXPECT_GT(cpu, 0.019);
  EXPECT_GT(gpu, 0.049);
  EXPECT_LT(gpu, 1);

  std::map<std::string, double> of_cpu{{"joules", 3}, {"joules_cpu", 3}};
  watch.count_error(10, of_cpu);
  EXPECT_DOUBLE_EQ(of_cpu["joules_error"], 2 * cpu / 10);
  std::map<std::string, double> of_both{{"joules_cpu", 3}, {"joules_gpu", 4}};
  watch.count_error(10, of_both);
  EXPECT_DOUBLE_EQ(of_both["joules_error"], 2 * std::max(cpu, gpu) / 10);
  std::map<std::string, double> of_neither{{"seconds", 1}};
  watch.count_error(10, of_neither);
  EXPECT_EQ(of_neither.size(), 1U);
}

TEST(EnergyWatch, TheErrorOfAMeterThatDoesNotMoveIsUnknown) {
  EnergyWatch watch({clockwork("cpu", for_ever)}, /*of_whole_machine=*/false);
  watch.watch_updates(a_moment, {});
  EXPECT_TRUE(watch.describe()["meters"][0]["update_seconds"].is_null());
  EXPECT_FALSE(watch.describe().contains("gpu_reason")) << "no GPU computes";
  std::map<std::string, double> counters{{"joules", 3}, {"joules_cpu", 3}};
  watch.count_error(10, counters);
  EXPECT_FALSE(counters.contains("joules_error"));
}

TEST(EnergyWatch, AGpuThatTellsNothingHasAReason) {
  EnergyWatch watch({}, /*of_whole_machine=*/false);
  watch.watch_updates(for_ever, no_gpu);
  EXPECT_FALSE(watch.describe().contains("meters"));
  const std::string why = watch.describe()["gpu_reason"];
  EXPECT_TRUE(why.starts_with("the GPU's driver tells no energy: NVML")) << why;
}

/// Of a loop of two iterations, in which each of two meters counted 6 J.
nlohmann::ordered_json counted(const std::string& name, bool of_whole_machine) {
  EnergyWatch watch({script({1, 7}), script({20, 26})}, of_whole_machine, /*shortest_seconds=*/0);
  Device device{.kind = &backend_named(name)};
  double joules = 0;
  if (device.has_own_memory()) {  // its driver tells another 100 J at each call
    device.state = [&joules] { return GpuState{.joules = joules += 100}; };
  }
  watch.before(device);
  watch.after(device);
  nlohmann::ordered_json counters = nlohmann::ordered_json::object();
  watch.count(2, counters);
  return counters;
}

TEST(EnergyWatch, TheEnergyOfARowIsThatOfAllThatComputed) {
  using Json = nlohmann::ordered_json;
  EXPECT_EQ(counted("cpu", false), (Json{{"joules_cpu", 6.0}, {"joules", 6.0}}));
  EXPECT_EQ(counted("cuda", false),
            (Json{{"joules_gpu", 50.0}, {"joules_cpu", 6.0}, {"joules", 56.0}}));
}

TEST(EnergyWatch, AMeterOfTheWholeMachineHasTheGpuInIt) {
  using Json = nlohmann::ordered_json;
  EXPECT_EQ(counted("cpu", true), (Json{{"joules_machine", 6.0}, {"joules", 6.0}}));
  EXPECT_EQ(counted("cuda", true),
            (Json{{"joules_gpu", 50.0}, {"joules_machine", 6.0}, {"joules", 6.0}}));
}

TEST(EnergyWatch, ACommandTellsTheJoulesOrIsSaidNotTo) {
  EXPECT_EQ(command_meter("echo 12.5").joules(), 12.5);
  for (const char* wrong : {"echo much", "false", "echo nan", "true", "exec /nowhere 2>&-"}) {
    const EnergyWatch watch{std::string(wrong)};
    const std::string why = watch.describe().value("reason", "");
    EXPECT_EQ(why, "--meter=" + std::string(wrong) +
                       " must print the joules so far as a number, and end with 0");
  }
}

}  // namespace
}  // namespace crossover::bench
