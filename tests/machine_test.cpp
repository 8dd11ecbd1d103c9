// SPDX-License-Identifier: Apache-2.0
#include "crossover/machine.h"

#include <gtest/gtest.h>

#include <thread>

namespace crossover::test {
namespace {

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
