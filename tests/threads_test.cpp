// SPDX-License-Identifier: Apache-2.0
// The thread count of a Program takes effect: seen from the kernel, which counts each thread's
// time.
#include <gtest/gtest.h>
#include <unistd.h>

#ifdef __SSE3__
#include <xmmintrin.h>
#endif

#include <filesystem>
#include <fstream>
#include <limits>
#include <map>

#include "crossover/machine.h"

#include "support.h"

namespace crossover::test {
namespace {

using Nanoseconds = std::int64_t;

[[maybe_unused]] constexpr unsigned flushing = 0x8040;  ///< FTZ and DAZ in x86's MXCSR

/// Time on a processor so far, by thread.
std::map<std::string, Nanoseconds> times() {
  std::map<std::string, Nanoseconds> all;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(task.path() / "schedstat");
    Nanoseconds time = 0;
    if (file >> time) {
      all[task.path().filename()] = time;
    }
  }
  return all;
}

/// How many threads worked while a Program ran for a while.
int workers(int threads) {
  const Model model = mlp("m", {256, 512, 512, 10}, Activation::relu);
  const Training training{
      fuse(training_epoch(model, {.rows = 512, .batch = 256, .optimizer = SgdOptions{}})),
      uniform_rows({256}, 512, 10)};
  const auto backend = make_cpu_backend();
  const auto program = started(*backend, training, threads);
  program->enqueue(0, 2);
  const auto before = times();
  // By this thread's own time, not the clock: a busy machine gives no thread less of the work.
  const std::string self = std::to_string(gettid());
  while (times().at(self) - before.at(self) < 200'000'000) {
    program->enqueue(0, 2);
  }
  int worked = 0;
  Nanoseconds all = 0;
  std::map<std::string, Nanoseconds> spent;
  for (const auto& [thread, time] : times()) {
    const auto at = before.find(thread);
    spent[thread] = time - (at == before.end() ? 0 : at->second);
    all += spent[thread];
  }
  for (const auto& [thread, time] : spent) {
    // An idle worker spins for a moment and sleeps: a few milliseconds in all.
    worked += time > all / 20 ? 1 : 0;
  }
  return worked;
}

TEST(Threads, TakeEffect) {
  if (times().empty() || times().begin()->second == 0) {
    GTEST_SKIP() << "this kernel keeps no times of threads in /proc/self/task/*/schedstat";
  }
  EXPECT_EQ(workers(1), 1);
  EXPECT_EQ(workers(2), 2);
  EXPECT_EQ(workers(3), 3);
  EXPECT_EQ(workers(1), 1);  // and again, with idle workers around
}

#ifdef __SSE3__
TEST(Threads, TreatDenormalNumbersAsZero) {
  const Model model = mlp("m", {4, 3, 2}, Activation::relu);
  const Workload workload =
      fuse(training_epoch(model, {.rows = 8, .batch = 8, .optimizer = SgdOptions{}}));
  constexpr int threads = 2;
  for (const Execution execution : {Execution::eager, Execution::fused, Execution::automatic}) {
    const auto set_modes = [](unsigned bits) {
#pragma omp parallel num_threads(threads)
      _mm_setcsr((_mm_getcsr() & ~flushing) | bits);
    };
    set_modes(0);
    const auto program =
        make_cpu_backend()->compile(workload, {.threads = threads, .execution = execution});
    int flushed = 0;
    bool by_result = true;
#pragma omp parallel num_threads(threads) reduction(+ : flushed) reduction(&& : by_result)
    {
      flushed += (_mm_getcsr() & flushing) == flushing ? 1 : 0;
      const volatile float smallest = std::numeric_limits<float>::min();
      by_result = smallest / 2 == 0;
    }
    EXPECT_EQ(flushed, threads);
    EXPECT_TRUE(by_result);
    set_modes(0);
  }
  EXPECT_TRUE(thread_settings().flush_denormals);
}
#endif

}  // namespace
}  // namespace crossover::test
