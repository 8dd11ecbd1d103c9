// SPDX-License-Identifier: Apache-2.0
#include "crossover/machine.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace crossover::test {
namespace {

std::string arm_cpuinfo(const std::vector<const char*>& parts) {
  std::string text;
  for (const char* part : parts) {
    text +=
        std::string("processor\t: 0\nBogoMIPS\t: 243.75\nFeatures\t: fp asimd\n") +
        "CPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x3\nCPU part\t: " + part +
        "\nCPU revision\t: 1\n\n";
  }
  return text;
}

TEST(ProcessorName, IsReadFromTheTextOfEachArchitecture) {
  EXPECT_EQ(processor_name("processor\t: 0\nmodel\t\t: 1\nmodel name\t: AMD EPYC 7763\n"
                           "processor\t: 1\nmodel name\t: AMD EPYC 7763\n"),
            "AMD EPYC 7763");
  EXPECT_EQ(processor_name(arm_cpuinfo({"0xd0c", "0xd0c"})), "Neoverse-N1");
  EXPECT_EQ(processor_name(arm_cpuinfo({"0xd05", "0xd0b", "0xd0b"})),
            "1 Cortex-A55 + 2 Cortex-A76");
  EXPECT_EQ(processor_name(arm_cpuinfo({"0xd99"})), "ARM 0x41 0xd99");
  EXPECT_EQ(processor_name("hart\t: 0\n"), "");
}

TEST(MachineId, TellsMachinesOfArmApart) {
  const auto id = [](const char* part) {
    return machine_id(processor_name(arm_cpuinfo({part})), "", "", 64);
  };
  EXPECT_EQ(id("0xd0c"), "neoverse-n1-64c");
  EXPECT_EQ(id("0xd40"), "neoverse-v1-64c");
  EXPECT_EQ(id("0xd99"), "arm-0x41-0xd99-64c");
  EXPECT_EQ(machine_id(processor_name(arm_cpuinfo({"0xd85", "0xd87", "0xd87"})), "", "", 3),
            "2-cortex-a725-1-cortex-x925-3c");
}

TEST(ProcessorSlug, KeepsTheNameAndDropsFrequencyAndNoise) {
  EXPECT_EQ(processor_slug("AMD EPYC"), "amd-epyc");
  EXPECT_EQ(processor_slug("AMD EPYC 7763 64-Core Processor"), "amd-epyc-7763");
  EXPECT_EQ(processor_slug("Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz"),
            "intel-xeon-platinum-8481c");
  EXPECT_EQ(processor_slug("Intel(R) Core(TM) i7-3820 CPU @ 3.60GHz"), "intel-core-i7-3820");
  EXPECT_EQ(processor_slug("AMD Ryzen 7 5700U with Radeon Graphics"), "amd-ryzen-7-5700u");
  EXPECT_EQ(processor_slug("../../etc/passwd"), "etc-passwd");
  EXPECT_EQ(processor_slug(""), "unknown");
}

TEST(MachineId, TellsGenerationsApartWhereTheNameDoesNot) {
  EXPECT_EQ(machine_id("AMD EPYC 7763 64-Core Processor", "25", "1", 64), "amd-epyc-7763-64c");
  EXPECT_EQ(machine_id("AMD EPYC", "25", "1", 2), "amd-epyc-25-1-2c");
  EXPECT_EQ(machine_id("AMD EPYC", "25", "17", 2), "amd-epyc-25-17-2c");
  EXPECT_EQ(machine_id("AMD EPYC", "", "", 2), "amd-epyc-2c");
}

TEST(Machine, IsVirtualWhereAHypervisorSaysSo) {
  EXPECT_EQ(is_virtual("processor\t: 0\nflags\t\t: fpu avx2 hypervisor lahf_lm\n"), true);
  EXPECT_EQ(is_virtual("processor\t: 0\nflags\t\t: fpu avx2\n"), false);
  EXPECT_EQ(is_virtual("processor\t: 0\nFeatures\t: fp asimd\n"), std::nullopt) << "ARM's";
}

TEST(Turbo, IsToldByEitherOfTheDriversOfClocks) {
  namespace files = std::filesystem;
  const files::path root = files::temp_directory_path() / ("turbo-" + std::to_string(getpid()));
  const files::path folder = root / "sys/devices/system/cpu";
  const auto told = [&](const std::string& driver, const std::string& file, const char* text) {
    files::create_directories(folder / driver);
    std::ofstream(folder / driver / file) << text << "\n";
    const std::optional<bool> found = turbo(root);
    files::remove_all(root);
    return found;
  };
  EXPECT_EQ(told("cpufreq", "boost", "1"), true);
  EXPECT_EQ(told("cpufreq", "boost", "0"), false);
  EXPECT_EQ(told("intel_pstate", "no_turbo", "0"), true);
  EXPECT_EQ(told("intel_pstate", "no_turbo", "1"), false);
  EXPECT_EQ(turbo(root), std::nullopt);
}

TEST(WslGpu, IsToldByTheKernelAndTheDeviceOfWindows) {
  namespace files = std::filesystem;
  const files::path root = files::temp_directory_path() / ("wsl-" + std::to_string(getpid()));
  const auto told = [&](const char* kernel, bool has_device) {
    files::create_directories(root / "proc/sys/kernel");
    files::create_directories(root / "dev");
    std::ofstream(root / "proc/sys/kernel/osrelease") << kernel << "\n";
    if (has_device) {
      std::ofstream(root / "dev/dxg") << "";
    }
    const std::optional<bool> found = wsl_gpu(root);
    files::remove_all(root);
    return found;
  };
  EXPECT_EQ(told("6.6.87.2-microsoft-standard-WSL2", true), true);
  EXPECT_EQ(told("6.6.87.2-microsoft-standard-WSL2+", false), false);
  EXPECT_EQ(told("4.4.0-19041-Microsoft", false), false);
  EXPECT_EQ(told("6.1.0-40-amd64", false), std::nullopt);
  EXPECT_EQ(told("6.1.0-40-amd64", true), std::nullopt);
  EXPECT_EQ(wsl_gpu(root), std::nullopt);
}

TEST(ThisMachine, IsDescribed) {
  const Machine machine = this_machine();
  EXPECT_FALSE(machine.id.empty());
  EXPECT_EQ(machine.id.find('/'), std::string::npos);
  EXPECT_GE(machine.threads, machine.cores);
  EXPECT_GE(machine.cores, machine.sockets);
  EXPECT_GE(machine.numa_nodes, 1);
  EXPECT_LE(machine.threads, static_cast<int>(std::thread::hardware_concurrency()));
  EXPECT_GT(machine.memory_bytes, std::int64_t{1} << 26);
  EXPECT_FALSE(machine.kernel.empty());
}

}  // namespace
}  // namespace crossover::test
