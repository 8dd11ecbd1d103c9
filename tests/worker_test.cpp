// SPDX-License-Identifier: Apache-2.0
// A worker's process, as whoever asks it sees it: that of a shell, which answers as it is told.
#include "worker/worker.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "crossover/verify.h"
#include "worker/row_server.h"

namespace crossover::bench {
namespace {

/// Runs this for each request.
std::unique_ptr<WorkerProcess> worker_that(const std::string& does) {
  return std::make_unique<WorkerProcess>(
      std::vector<std::string>{"/bin/sh", "-c", "while read -r request; do " + does + "; done"});
}

/// How a worker ends that is asked once.
WorkerEnded end_of(const std::string& does, double limit_seconds = 0.5) {
  try {
    worker_that(does)->ask({{"do", "repeat"}}, limit_seconds);
  } catch (const WorkerEnded& end) {
    return end;
  }
  return WorkerEnded("it answered");
}

TEST(WorkerProcess, AnswersBehindWhatItSaysItIsAt) {
  const auto worker = worker_that(R"(echo '{"doing": "measuring"}'; echo '{"times": 1}')");
  EXPECT_EQ(worker->ask({{"do", "repeat"}}), Json({{"times", 1}}));
  EXPECT_EQ(worker->ask({{"do", "repeat"}}), Json({{"times", 1}}));
}

TEST(WorkerProcess, ThatEndsSaysHowAndWhatItWasAt) {
  const WorkerEnded signal = end_of(R"(echo '{"doing": "measuring"}'; kill -SEGV $$)", 60);
  EXPECT_STREQ(signal.what(),
               "the worker's process was ended by a signal (Segmentation fault) while measuring");
  EXPECT_FALSE(signal.hung);
  EXPECT_STREQ(end_of("exit 3", 60).what(), "the worker's process ended with exit code 3");
}

TEST(WorkerProcess, ThatSaysNoMoreIsKilledInTime) {
  const auto start = std::chrono::steady_clock::now();
  const WorkerEnded end = end_of(R"(echo '{"doing": "warming up"}'; exec sleep 100)");
  EXPECT_STREQ(end.what(), "the worker's process did not answer within 0.5 s while warming up");
  EXPECT_TRUE(end.hung);
  EXPECT_TRUE(end_of("printf '{\"tim'; exec sleep 100").hung);  // in the middle of a line
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(50));
}

TEST(WorkerProcess, HasPatienceAnewWithEveryWord) {
  const std::string word = R"(sleep 1.2; echo '{"doing": "it"}'; )";
  EXPECT_STREQ(end_of(word + word + "echo '{}'", 2).what(), "it answered");
}

TEST(WorkerProcess, ThatWasReplacedIsAnother) {
  const auto worker = worker_that(R"(echo "{\"process\": $$}")");
  const Json first = worker->ask({{"do", "describe"}});
  EXPECT_EQ(worker->ask({{"do", "describe"}}), first);
  EXPECT_TRUE(worker->replace({}));
  EXPECT_NE(worker->ask({{"do", "describe"}}), first);
}

/// An iteration of a millisecond.
class Slow : public PreparedBenchmark {
 public:
  void run() override { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }
};

TEST(RowServer, TellsTheTimeOfWrongResultsApart) {
  Row row;
  row.make = [](Result& result) {
    result.first_steps.emplace();  // of an instance before
    verify_or_note(result, [] { throw Mismatch("it differs", 0.5, 0.25); });
    EXPECT_FALSE(result.first_steps) << "what was not verified is nothing to come to";
    return std::make_unique<Slow>();
  };
  RowServer server(
      [&](const auto& /*name*/, const auto& /*configuration*/) -> Row& { return row; });
  const Json answer =
      server.answer({{"do", "prepare"}, {"row", "it"}, {"configuration", Json::object()}});
  EXPECT_EQ(answer["outcome"], "failed");
  EXPECT_EQ(answer["error_message"], "it differs");
  EXPECT_EQ(answer["not_verified"]["relative_error"], 0.5);
  EXPECT_EQ(answer["not_verified"]["tolerance"], 0.25);
  EXPECT_GE(answer["not_verified"]["seconds"], 1e-3);
  EXPECT_FALSE(answer.contains("facts"));
}

}  // namespace
}  // namespace crossover::bench
