// SPDX-License-Identifier: Apache-2.0
// The GPU's probes: right after a run, found wrong without one.
#include <gtest/gtest.h>

#include "crossover/verify.h"
#include "gpu_variants.h"
#include "probe_cases.h"
#include "support.h"

namespace crossover::test {
namespace {

class GpuProbe : public testing::TestWithParam<std::tuple<GpuVariant, ProbeCase>> {};

TEST_P(GpuProbe, IsRightAfterARunAndWrongWithoutOne) {
  const auto& [variant, c] = GetParam();
  const FoundBackend gpu = gpu_of(variant);
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
                                          testing::ValuesIn(probe_cases(false))),
                         labelled);

}  // namespace
}  // namespace crossover::test
