// SPDX-License-Identifier: Apache-2.0
// Whatever call fails, at whatever point: nothing leaks, the sentence says what happened, and what
// can go on goes on.
#include <gmock/gmock.h>

#include "crossover/backend.h"
#include "crossover/start.h"
#include "crossover/verify.h"
#include "cuda_host.h"
#include "emulated.h"
#include "support.h"

namespace crossover::test {
namespace {

using testing::HasSubstr;

Training tiny_training() {
  return {fuse(training_epoch(mlp("m", {3, 4, 2}, Activation::relu),
                              {.rows = 7, .batch = 3, .optimizer = AdamWOptions{}})),
          uniform_rows({3}, 7, 2)};
}

/// A whole life: found, compiled, trained, verified.
void live_a_life(const Training& training, const CompileOptions& options) {
  const FoundBackend made = make_cuda_backend();
  if (!made.backend) {
    throw Unsupported(made.reason);
  }
  const auto steps = static_cast<std::int64_t>(training.workload.order.size());
  const auto program = made.backend->compile(training.workload, options);
  set_data(*program, training.workload, training.data);
  restart(*program, training.workload);
  program->enqueue(0, steps);
  program->wait();
  verify_state(*program, training.workload,
               reference_trajectory(training.workload, training.data, steps));
}

enum class Kind { out_of_memory, other, launch_failure, device_lost };

cudaError_t error_of(Kind kind) {
  switch (kind) {
    case Kind::out_of_memory:
      return cudaErrorMemoryAllocation;
    case Kind::other:
      return cudaErrorInvalidValue;
    case Kind::launch_failure:
      return cudaErrorLaunchFailure;
    case Kind::device_lost:
      return cudaErrorECCUncorrectable;
  }
  return cudaErrorUnknown;
}

End end_of_life(const Training& training, const CompileOptions& options) {
  return end_of([&] { live_a_life(training, options); });
}

struct Mode {
  Placement placement;
  Execution execution;
  bool loss_every_step;
  const char* name;
  ProductChoice products = ProductChoice::heuristic;
  int streams = 1;
};

/// Which of `count` calls fail in turn. With test_all() each; else the last 8 (destructors) and
/// every 47th before, from another one in each test of the suite, so that its 72 tests meet nearly
/// all of them; the first 24 (finding the device, as in every mode) in the first four. Five where
/// trials repeat them as often as their time allows: autotuning a few, `auto` all.
std::vector<std::int64_t> calls_to_fail(std::int64_t count, int of_test, bool has_trials) {
  const std::int64_t first = of_test < 4 ? 24 : 0;
  const std::int64_t last = has_trials ? 2 : 8;
  const std::int64_t apart = has_trials ? count / 3 : count > 1000 ? 73 : 47;
  std::vector<std::int64_t> calls;
  for (std::int64_t n = 1; n <= count; ++n) {
    if (test_all() || n <= first || n > count - last || n % apart == of_test % apart) {
      calls.push_back(n);
    }
  }
  return calls;
}

class EmulatedFailure : public testing::TestWithParam<std::tuple<Mode, Kind>> {
 protected:
  CompileOptions options() const {
    const Mode& mode = std::get<0>(GetParam());
    return {.execution = mode.execution,
            .placement = mode.placement,
            .products = mode.products,
            .graph_form = GraphForm{.streams = mode.streams},
            .loss_every_step = mode.loss_every_step};
  }
  static std::vector<std::int64_t> to_fail(std::int64_t count) {
    const Mode& mode = std::get<0>(GetParam());
    const bool has_trials =
        mode.execution == Execution::automatic || mode.products == ProductChoice::autotuned;
    return calls_to_fail(count, number(), has_trials);
  }

 private:
  /// Of this test among those of the suite.
  static int number() {
    const testing::TestSuite& suite = *testing::UnitTest::GetInstance()->current_test_suite();
    const testing::TestInfo* current = testing::UnitTest::GetInstance()->current_test_info();
    int i = 0;
    while (suite.GetTestInfo(i) != current) {
      ++i;
    }
    return i;
  }
};

TEST_P(EmulatedFailure, OfAnyCallIsToldAndLeaksNothing) {
  const Kind kind = std::get<1>(GetParam());
  const Training training = tiny_training();
  ASSERT_EQ(end_of_life(training, options()).sentence, "");
  const std::int64_t calls = cuda_host::calls();
  for (const std::int64_t n : to_fail(calls)) {
    SCOPED_TRACE("call " + std::to_string(n));
    cuda_host::reset(static_cast<std::uint64_t>(n));
    cuda_host::fail_call(n, error_of(kind));
    testing::internal::CaptureStderr();  // destructors may tell there
    const End end = end_of_life(training, options());
    const std::string told = testing::internal::GetCapturedStderr();
    if (!cuda_host::has_failed()) {
      continue;  // another seed, fewer calls
    }
    EXPECT_EQ(cuda_host::live().text(), "") << end.sentence;
    EXPECT_THAT(cuda_host::take_violations(), testing::IsEmpty());
    EXPECT_NE(end.kind, "Mismatch") << end.sentence;
    if (cuda_host::is_sticky(error_of(kind))) {
      // Failures of the very last calls, in destructors, reach nobody but standard error.
      EXPECT_TRUE(end.kind == "DeviceFailed" || end.kind == "Unsupported" ||
                  (end.kind.empty() && !told.empty()))
          << end.kind << ": " << end.sentence;
    } else if (kind == Kind::out_of_memory) {
      EXPECT_TRUE(end.kind == "OutOfMemory" || end.kind == "Unsupported" || end.kind.empty())
          << end.kind << ": " << end.sentence;
    }
    if (!cuda_host::is_sticky(error_of(kind))) {
      EXPECT_EQ(end_of_life(training, options()).sentence, "") << "can't be used any more";
    }
  }
}

TEST_P(EmulatedFailure, OfAnyExecutionIsToldAndLeaksNothing) {
  const Kind kind = std::get<1>(GetParam());
  if (!cuda_host::is_sticky(error_of(kind))) {
    GTEST_SKIP() << "the device's own failures all end the context";
  }
  const Training training = tiny_training();
  ASSERT_EQ(end_of_life(training, options()).sentence, "");
  const std::int64_t executed = cuda_host::executed();
  for (const std::int64_t n : to_fail(executed)) {
    SCOPED_TRACE("execution " + std::to_string(n));
    cuda_host::reset(static_cast<std::uint64_t>(n));
    cuda_host::fail_execution(n, error_of(kind));
    testing::internal::CaptureStderr();
    const End end = end_of_life(training, options());
    testing::internal::GetCapturedStderr();
    if (!cuda_host::has_failed()) {
      continue;  // trials take as many steps as their time allows
    }
    EXPECT_EQ(cuda_host::live().text(), "") << end.sentence;
    EXPECT_THAT(cuda_host::take_violations(), testing::IsEmpty());
    EXPECT_EQ(end.kind, "DeviceFailed") << end.sentence;
    EXPECT_THAT(end.sentence, HasSubstr(cudaGetErrorString(error_of(kind))));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Gpu, EmulatedFailure,
    testing::Combine(
        testing::Values(
            Mode{Placement::resident, Execution::eager, false, "resident_eager"},
            Mode{Placement::resident, Execution::graph, true, "resident_graph_each_loss"},
            Mode{Placement::resident, Execution::graph_epoch, false, "resident_graph_epoch"},
            Mode{Placement::resident, Execution::persistent, false, "resident_persistent"},
            Mode{Placement::resident, Execution::automatic, false, "resident_automatic"},
            Mode{Placement::pageable, Execution::eager, true, "pageable_eager_each_loss"},
            Mode{Placement::pinned, Execution::graph, false, "pinned_graph_two_streams",
                 ProductChoice::heuristic, 2},
            Mode{Placement::pinned_async, Execution::eager, false, "pinned_async_eager"},
            Mode{Placement::pinned_async, Execution::graph, false, "pinned_async_graph"},
            Mode{Placement::pinned, Execution::eager, false, "pinned_eager_autotuned",
                 ProductChoice::autotuned}),
        testing::Values(Kind::out_of_memory, Kind::other, Kind::launch_failure, Kind::device_lost)),
    [](const auto& parameters) {
      const Kind kind = std::get<1>(parameters.param);
      return std::string(std::get<0>(parameters.param).name) +
             (kind == Kind::out_of_memory    ? "_out_of_memory"
              : kind == Kind::other          ? "_other"
              : kind == Kind::launch_failure ? "_launch_failure"
                                             : "_device_lost");
    });

// ---- no GPU to begin with
// --------------------------------------------------------------------------

TEST(EmulatedDiscovery, SaysWhyThereIsNone) {
  const auto reason = [](auto change) {
    cuda_host::reset();
    change(cuda_host::device());
    const FoundBackend made = make_cuda_backend();
    EXPECT_EQ(made.backend, nullptr);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "an error is left for whoever asks next";
    return made.reason;
  };
  EXPECT_EQ(reason([](auto& device) { device.driver_version = 0; }),
            "none (no NVIDIA driver is loaded)");
  EXPECT_THAT(reason([](auto& device) { device.driver_version = 11040; }),
              HasSubstr("the driver supports CUDA 11.4, this program needs 13.0"));
  EXPECT_EQ(reason([](auto& device) { device.count = 0; }), "none (no device)");
  EXPECT_THAT(reason([](auto& device) { device.busy = cudaErrorDevicesUnavailable; }),
              HasSubstr("Emulated GPU is busy"));
  EXPECT_THAT(reason([](auto& device) { device.has_code = false; }),
              HasSubstr("holds no code for Emulated GPU"));
}

TEST(EmulatedDiscovery, FindsTheDevice) {
  const FoundBackend made = make_cuda_backend();
  ASSERT_NE(made.backend, nullptr);
  const Description description = made.backend->describe();
  EXPECT_GT(description.memory_bytes, 0);
  EXPECT_EQ(description.libraries.at("gpu"), "Emulated GPU");
}

TEST(EmulatedMemoryLimit, ThrowsWithBothNumbers) {
  cuda_host::device().bytes = 1 << 20U;
  cuda_host::device().bytes_of_others = 1 << 19U;
  const Training training = tiny_training();
  const FoundBackend made = make_cuda_backend();
  EXPECT_THAT(message_of<OutOfMemory>(
                  [&] { static_cast<void>(made.backend->compile(training.workload, {})); }),
              HasSubstr("524288 of 1048576 are free"));
}

}  // namespace
}  // namespace crossover::test
