// SPDX-License-Identifier: Apache-2.0
// The GPU's probes: right after a run, found wrong without one.
#include <gtest/gtest.h>

#include "crossover/probe.h"
#include "crossover/verify.h"
#include "gpu_variants.h"

namespace crossover::test {
namespace {

struct ProbeCase {
  std::string name;
  ProbeSpec spec;
  bool has_result = true;  ///< bytes or numbers that a check can find wrong

  friend std::ostream& operator<<(std::ostream& out, const ProbeCase& c) { return out << c.name; }
};

std::vector<ProbeCase> probe_cases() {
  std::vector<ProbeCase> all{
      {"fma", FmaProbe{.values = 2000, .length = 77}}, {"triad", TriadProbe{.values = 100'003}},
      {"launches", LaunchProbe{.launches = 3}, false}, {"graph", GraphNodeProbe{.nodes = 5}, false},
      {"synchronize", SynchronizeProbe{}, false},
  };
  for (const Precision precision :
       {Precision::f32, Precision::tf32, Precision::bf16, Precision::f16}) {
    for (const std::int64_t size : {33, 128}) {
      all.push_back({"matrix_" + to_string(precision) + "_" + std::to_string(size),
                     MatrixProbe{.precision = precision, .size = size}});
    }
  }
  for (const auto& [name, direction] : {std::pair{"up", Direction::host_to_device},
                                        {"down", Direction::device_to_host},
                                        {"both", Direction::both},
                                        {"within", Direction::device_to_device}}) {
    for (const bool asynchronous : {false, true}) {
      all.push_back({std::string("copy_") + name + (asynchronous ? "_async" : ""),
                     CopyProbe{.direction = direction,
                               .memory = HostMemory::pinned,
                               .asynchronous = asynchronous,
                               .bytes = 100'003}});
    }
  }
  return all;
}

class GpuProbe : public testing::TestWithParam<std::tuple<GpuVariant, ProbeCase>> {};

TEST_P(GpuProbe, IsRightAfterARunAndWrongWithoutOne) {
  const auto& [variant, c] = GetParam();
  const CudaBackend gpu = gpu_of(variant);
  if (!gpu.backend) {
    GTEST_SKIP() << gpu.reason;
  }
  std::unique_ptr<Probe> probe;
  try {
    probe = gpu.backend->make_probe(c.spec);
  } catch (const Unsupported& refusal) {
    GTEST_SKIP() << refusal.what();
  }
  if (c.has_result) {
    EXPECT_THROW(probe->check(), Mismatch) << "nothing has run";
  }
  probe->run();
  probe->run();
  EXPECT_NO_THROW(probe->check());
  if (c.has_result) {
    EXPECT_THROW(probe->check(), Mismatch) << "what was checked is spoiled";
  }
  EXPECT_GE(probe->device_seconds(), 0);
}

INSTANTIATE_TEST_SUITE_P(Gpu, GpuProbe,
                         testing::Combine(testing::ValuesIn(gpu_variants()),
                                          testing::ValuesIn(probe_cases())),
                         [](const auto& parameters) {
                           return std::get<0>(parameters.param).name + "_" +
                                  std::get<1>(parameters.param).name;
                         });

}  // namespace
}  // namespace crossover::test
