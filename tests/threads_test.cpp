// SPDX-License-Identifier: Apache-2.0
// The thread count of a Program takes effect: seen from the kernel, which counts each thread's
// time.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "support.h"

namespace crossover::test {
namespace {

using Nanoseconds = std::int64_t;

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

}  // namespace
}  // namespace crossover::test
