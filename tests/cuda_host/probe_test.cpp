// SPDX-License-Identifier: Apache-2.0
// The GPU's probes on the emulation: right results in whatever order, and any failing call.
#include "crossover/probe.h"

#include <gmock/gmock.h>

#include "crossover/backend.h"
#include "crossover/verify.h"
#include "cuda_host.h"
#include "emulated.h"
#include "probe_cases.h"
#include "support.h"

namespace crossover::test {
namespace {

using cuda_host::Order;
using testing::HasSubstr;

std::unique_ptr<Probe> made(const ProbeSpec& spec) {
  const FoundBackend gpu = make_cuda_backend();
  if (!gpu.backend) {
    throw Unsupported(gpu.reason);
  }
  return gpu.backend->make_probe(spec);
}

class EmulatedProbe : public testing::TestWithParam<ProbeCase> {};

TEST_P(EmulatedProbe, IsRightInWhateverOrderAndWrongWithoutARun) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    cuda_host::reset(seed, seed == 0 ? Order::eager : seed == 1 ? Order::lazy : Order::shuffled);
    const auto probe = made(GetParam().spec);
    if (GetParam().has_result) {
      EXPECT_THROW(probe->check(), Mismatch) << "nothing has run";
    }
    probe->run();
    probe->run();
    EXPECT_NO_THROW(probe->check()) << "seed " << seed;
    if (GetParam().has_result) {
      EXPECT_THROW(probe->check(), Mismatch) << "what was checked is spoiled";
    }
    const bool has_clock = !std::holds_alternative<SynchronizeProbe>(GetParam().spec);
    EXPECT_EQ(probe->device_seconds() > 0, has_clock);
    if (has_clock) {
      EXPECT_NO_THROW(probe->check());
    }
  }
}

TEST_P(EmulatedProbe, TakesNoMoreMemoryThanItSays) {
  const auto probe = made(GetParam().spec);
  EXPECT_LE(static_cast<std::int64_t>(cuda_host::live_device_bytes()),
            memory_needed(GetParam().spec).device);
}

TEST_P(EmulatedProbe, AllocatesNothingInARun) {
  const auto probe = made(GetParam().spec);
  const auto before = cuda_host::live();
  probe->run();
  EXPECT_EQ(cuda_host::live(), before);
}

End end_of_life(const ProbeSpec& spec) {
  return end_of([&] {
    const auto probe = made(spec);
    probe->run();
    probe->check();
    probe->device_seconds();
  });
}

TEST_P(EmulatedProbe, TellsAnyFailingCallAndLeaksNothing) {
  if (GetParam().name == "matrix_f16_128" && !test_all()) {
    GTEST_SKIP() << "the calls of bf16: with CROSSOVER_TEST_ALL";
  }
  ASSERT_EQ(end_of_life(GetParam().spec).sentence, "");
  const std::int64_t calls = cuda_host::calls();
  for (const cudaError_t error : {cudaErrorMemoryAllocation, cudaErrorInvalidValue,
                                  cudaErrorLaunchFailure, cudaErrorECCUncorrectable}) {
    for (std::int64_t n = 1; n <= calls; ++n) {
      SCOPED_TRACE(std::string(cudaGetErrorString(error)) + " in call " + std::to_string(n));
      cuda_host::reset(static_cast<std::uint64_t>(n));
      cuda_host::fail_call(n, error);
      testing::internal::CaptureStderr();  // destructors may tell there
      const End end = end_of_life(GetParam().spec);
      const std::string told = testing::internal::GetCapturedStderr();
      EXPECT_EQ(cuda_host::live().text(), "") << end.sentence;
      EXPECT_THAT(cuda_host::take_violations(), testing::IsEmpty());
      EXPECT_NE(end.kind, "Mismatch") << end.sentence;
      if (!cuda_host::has_failed()) {
        continue;  // another seed, fewer calls
      }
      if (cuda_host::is_sticky(error)) {
        EXPECT_TRUE(end.kind == "DeviceFailed" || end.kind == "Unsupported" ||
                    (end.kind.empty() && !told.empty()))
            << end.sentence;
      } else {
        EXPECT_EQ(end_of_life(GetParam().spec).sentence, "") << "can't be used any more";
      }
    }
  }
}

TEST_P(EmulatedProbe, TellsAnyFailureOfTheDevice) {
  ASSERT_EQ(end_of_life(GetParam().spec).sentence, "");
  const std::int64_t executed = cuda_host::executed();
  for (std::int64_t n = 1; n <= executed; ++n) {
    SCOPED_TRACE("execution " + std::to_string(n));
    cuda_host::reset(static_cast<std::uint64_t>(n));
    cuda_host::fail_execution(n, cudaErrorLaunchFailure);
    testing::internal::CaptureStderr();
    const End end = end_of_life(GetParam().spec);
    testing::internal::GetCapturedStderr();
    EXPECT_EQ(end.kind, "DeviceFailed");
    EXPECT_EQ(cuda_host::live().text(), "");
    EXPECT_THAT(cuda_host::take_violations(), testing::IsEmpty());
  }
}

INSTANTIATE_TEST_SUITE_P(Gpu, EmulatedProbe, testing::ValuesIn(probe_cases(true)), labelled);

TEST(EmulatedProbe, LaunchesAsManyKernelsAsItSays) {
  const auto kernels = [](const ProbeSpec& spec) {
    const auto probe = made(spec);
    const std::int64_t before = cuda_host::executed();
    const std::int64_t launched = cuda_host::calls_of("kernel");
    probe->run();
    return std::pair{cuda_host::executed() - before, cuda_host::calls_of("kernel") - launched};
  };
  EXPECT_EQ(kernels(LaunchProbe{}), (std::pair<std::int64_t, std::int64_t>{1, 1}));
  EXPECT_EQ(kernels(LaunchProbe{.launches = 3}), (std::pair<std::int64_t, std::int64_t>{3, 3}));
  const auto [five, none] = kernels(GraphNodeProbe{.nodes = 5});
  const auto [two, none_either] = kernels(GraphNodeProbe{.nodes = 2});
  EXPECT_EQ(five - two, 3);  // beside the graph's own borders
  EXPECT_EQ(none + none_either, 0);
}

TEST(EmulatedProbe, CopiesAsOftenAsItSays) {
  const auto copies = [](bool asynchronous) {
    const auto probe = made(CopyProbe{.direction = Direction::host_to_device,
                                      .memory = HostMemory::pinned,
                                      .asynchronous = asynchronous,
                                      .bytes = 100});
    const std::int64_t before = cuda_host::calls_of("cudaMemcpyAsync");
    const std::int64_t waits = cuda_host::calls_of("cudaStreamSynchronize");
    probe->run();
    EXPECT_EQ(cuda_host::calls_of("cudaStreamSynchronize") - waits, 1);
    return cuda_host::calls_of("cudaMemcpyAsync") - before;
  };
  EXPECT_EQ(copies(false), 1);
  EXPECT_EQ(copies(true), CopyProbe::copies_in_flight);
}

TEST(EmulatedProbe, SaysWhatTheGpuHasNot) {
  const FoundBackend gpu = make_cuda_backend();
  for (const ProbeSpec& spec :
       {ProbeSpec(CopyProbe{.direction = Direction::host_to_host, .bytes = 1}),
        ProbeSpec(FmaProbe{.precision = Precision::bf16, .values = 1, .length = 1}),
        ProbeSpec(ForkJoinProbe{.threads = 2})}) {
    EXPECT_THROW(static_cast<void>(gpu.backend->make_probe(spec)), Unsupported) << spec.index();
  }
  cuda_host::device().major = 7;
  const FoundBackend older = make_cuda_backend();
  for (const Precision precision :
       {Precision::f32, Precision::tf32, Precision::bf16, Precision::f16}) {
    const std::string missing = older.backend->missing_for(precision);
    const MatrixProbe spec{.precision = precision, .size = 128};
    EXPECT_EQ(message_of<Unsupported>([&] { static_cast<void>(older.backend->make_probe(spec)); }),
              missing);
    if (!missing.empty()) {
      EXPECT_THAT(missing, HasSubstr(" has no products in " + to_string(precision)));
    }
  }
  cuda_host::device().bytes = 1 << 10U;
  EXPECT_THROW(static_cast<void>(gpu.backend->make_probe(TriadProbe{.values = 1000})), OutOfMemory);
}

}  // namespace
}  // namespace crossover::test
