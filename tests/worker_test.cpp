// SPDX-License-Identifier: Apache-2.0
// A worker's process, as whoever asks it sees it: that of a shell, which answers as it is told.
#include "worker/worker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "crossover/verify.h"
#include "rows/device.h"
#include "rows/watches.h"
#include "worker/row_server.h"

namespace crossover::bench {
namespace {

constexpr double enough = 60;  // seconds

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
  EXPECT_EQ(worker->ask({{"do", "describe"}}, enough), Json({{"times", 1}}));
  EXPECT_EQ(worker->ask({{"do", "describe"}}, enough), Json({{"times", 1}}));
}

TEST(WorkerProcess, ThatEndsSaysHowAndWhatItWasAt) {
  const WorkerEnded signal = end_of(R"(echo '{"doing": "measuring"}'; kill -SEGV $$)", 60);
  EXPECT_STREQ(signal.what(),
               "the worker's process was ended by a signal (Segmentation fault) while measuring");
  EXPECT_FALSE(signal.hung);
  EXPECT_STREQ(end_of("exit 3", 60).what(), "the worker's process ended with exit code 3");
}

TEST(WorkerProcess, ThatEndsIsQuoted) {
  EXPECT_STREQ(
      end_of("echo early >&2; echo 'No more threads' >&2; echo ---- >&2; exit 1", 60).what(),
      "the worker's process ended with exit code 1; its last words: No more threads");
}

TEST(WorkerProcess, WhatItsProcessesSayIsPassedOnOnce) {
  testing::internal::CaptureStderr();
  {
    const auto worker = worker_that("echo a >&2; echo a >&2; echo b$$ >&2; echo '{}'");
    for (int process = 0; process < 3; ++process) {
      worker->ask({{"do", "describe"}}, enough);
      worker->renew();
    }
  }
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(said.starts_with("a\na\nb")) << said;
  EXPECT_EQ(std::ranges::count(said, '\n'), 5) << said;
}

TEST(WorkerProcess, ThatAnswersNonsenseIsLost) {
  const auto how = [](const std::string& answer) { return end_of("echo '" + answer + "'", 60); };
  const std::string nonsense = "the worker's process answered 'repeat' with nonsense (";
  EXPECT_EQ(how("{}").what(), nonsense + "'times' is missing): {}");
  EXPECT_EQ(how("[]").what(),
            std::string("the worker's process answered what is no object of JSON: []"));
  const std::string times = R"("cpu_time":1,"iterations":1)";
  EXPECT_EQ(how(R"({"times":{"real_time":"fast",)" + times + "}}").what(),
            nonsense + "'times.real_time' is not a number from 0 on): {\"times\":{\"real_time\":" +
                "\"fast\"," + times + "}}");
  for (const char* answer :
       {R"({"times":[]})", R"({"outcome":"perhaps"})", R"({"outcome":"failed","error_message":1})",
        R"({"outcome":"failed","spent":{"timed":"long"}})", R"({"device_failed":true})",
        R"({"times":{"real_time":1,"cpu_time":1,"iterations":0}})",
        R"({"times":{"real_time":1,"cpu_time":1,"iterations":1},"doubts":[1]})"}) {
    EXPECT_TRUE(std::string(how(answer).what()).starts_with(nonsense)) << answer;
  }
}

TEST(Answers, AreAsTheProtocolSays) {
  const auto fault = [](const char* request, const char* answer) {
    return fault_of({{"do", request}}, Json::parse(answer));
  };
  EXPECT_EQ(fault("rows", "{}"), "'rows' is missing");
  EXPECT_EQ(fault("rows", R"({"rows":[{"configuration":{"family":1}}]})"),
            "'configuration' is not an object of texts");
  EXPECT_EQ(fault("rows", R"({"rows":[1]})"), "'configuration' is missing");
  EXPECT_EQ(fault("prepare", R"({"facts":{},"once":[]})"), "'once' is not an object");
  EXPECT_EQ(fault("prepare", R"({"facts":{"loss_first_epoch":null},"once":{}})"),
            "'facts.loss_first_epoch' is not a number from 0 on");
  EXPECT_EQ(fault("prepare", R"({"facts":{},"once":{}})"), "");
  EXPECT_EQ(fault("prepare", R"({"outcome":"skipped","error_message":"too large"})"), "");
  EXPECT_EQ(fault("release", "{}"), "");
  EXPECT_EQ(fault("check", R"({"verdict":"ok"})"), "'reason' is missing");
}

TEST(WorkerProcess, HasPatienceInTimeThatItsParentCanRunIn) {
  // Who waits is stopped for longer than the patience.
  const auto worker = worker_that("kill -STOP $PPID; sleep 5; kill -CONT $PPID; echo '{}'");
  EXPECT_EQ(worker->ask({{"do", "describe"}}, 3), Json::object());
  EXPECT_GT(worker->paused_seconds(), 2);
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
  EXPECT_STREQ(end_of(word + word + "echo '{\"outcome\": \"failed\"}'", 2).what(), "it answered");
}

TEST(WorkerProcess, ThatWasReplacedIsAnother) {
  const auto worker = worker_that(R"(echo "{\"process\": $$}")");
  const Json first = worker->ask({{"do", "describe"}}, enough);
  EXPECT_EQ(worker->ask({{"do", "describe"}}, enough), first);
  EXPECT_TRUE(worker->replace({}));
  EXPECT_NE(worker->ask({{"do", "describe"}}, enough), first);
}

/// An iteration of a millisecond.
class Slow : public PreparedBenchmark {
 public:
  void run() override { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }
};

/// Is stopped and goes on in its first iterations.
class Stopped : public PreparedBenchmark {
 public:
  explicit Stopped(int stops) : stops_(stops) {}
  void run() override {
    if (stops_-- > 0) {
      raise(SIGCONT);
    }
  }

 private:
  int stops_;
};

Json answer_of_stopped(int stops) {
  Devices devices = find_devices(CudaUse::off);
  RowServer server([&](const auto& /*name*/, const auto& /*configuration*/) {
    return RowServer::Source{
        .device = &devices.cpu(), .network = "", .make = [&](Result& /*result*/) {
          return std::make_unique<Stopped>(stops);
        }};
  });
  server.answer(
      {{"do", "prepare"}, {"row", "it"}, {"configuration", Json::object()}, {"iterations", 1}});
  return server.answer({{"do", "repeat"}, {"row", "it"}, {"min_time_seconds", 1e-6}});
}

TEST(GpuState, WarmsUpUntilTheClockStands) {
  Slow work;
  std::vector<int> clocks = {345, 900, 1755, 1755, 1000};
  std::size_t asked = 0;
  run_until_clock_stands(
      work, [&] { return std::optional(clocks.at(asked++)); }, 0.25);
  EXPECT_EQ(asked, 2) << "one that moves for longer than is waited for";
  asked = 0;
  run_until_clock_stands(
      work, [&] { return std::optional(clocks.at(asked++)); }, 1e-3);
  EXPECT_LE(asked, 4);
  asked = 2;
  run_until_clock_stands(
      work, [&] { return std::optional(clocks.at(asked++)); }, 0);
  EXPECT_EQ(asked, 4);
  std::size_t unknown = 0;
  run_until_clock_stands(
      work, [&]() -> std::optional<int> { return ++unknown, std::nullopt; }, 0);
  EXPECT_EQ(unknown, 2);
}

TEST(RowServer, MeasuresAgainWhatWasStopped) {
  const Json undisturbed = answer_of_stopped(0);
  EXPECT_FALSE(undisturbed.contains("measured_again")) << undisturbed;
  const Json once = answer_of_stopped(1);
  EXPECT_TRUE(once.contains("measured_again")) << once;
  EXPECT_TRUE(once["doubts"].empty());
  const Json always = answer_of_stopped(1000);
  EXPECT_FALSE(always.contains("measured_again"));
  EXPECT_EQ(always["doubts"], Json({paused_within}));
}

/// From the n-th run on a hundred thousand times as slow.
class Slowed : public PreparedBenchmark {
 public:
  explicit Slowed(int fast) : fast_(fast) {}
  void run() override {
    if (fast_-- <= 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }

 private:
  int fast_;
};

TEST(RowServer, EndsALoopThatOthersSlowDown) {
  Devices devices = find_devices(CudaUse::off);
  static constexpr int of_a_repetition = 100'000;
  RowServer server([&](const auto& /*name*/, const auto& /*configuration*/) {
    return RowServer::Source{.device = &devices.cpu(), .network = "", .make = [](Result&) {
                               return std::make_unique<Slowed>(of_a_repetition);
                             }};
  });
  server.answer({{"do", "prepare"},
                 {"row", "it"},
                 {"configuration", Json::object()},
                 {"iterations", of_a_repetition}});
  const Json request = {{"do", "repeat"}, {"row", "it"}, {"min_time_seconds", 1e-3}};
  const Json fast = server.answer(request).at("times");
  EXPECT_EQ(fast["iterations"], of_a_repetition);
  const Json slowed = server.answer(request).at("times");
  EXPECT_GE(slowed["iterations"], 1);
  EXPECT_LE(slowed["iterations"], 41);  // of two seconds
  EXPECT_GE(slowed["real_time"], 50.0);
  EXPECT_LE(slowed["cpu_time"], 5.0);
}

TEST(RowServer, RefusesARowOfAnotherNetworkAndOneThatIsNotThere) {
  const RowServer::Source row{.network = "a",
                              .make = [](Result& /*result*/) { return std::make_unique<Slow>(); }};
  RowServer server([&](const std::string& name, const auto& /*configuration*/) {
    return name == "it" ? row : throw std::out_of_range("there is no such row");
  });
  Json request = {
      {"do", "prepare"}, {"row", "it"}, {"configuration", Json::object()}, {"network", "a"}};
  EXPECT_TRUE(server.answer(request).contains("facts"));
  request["network"] = "b";
  EXPECT_TRUE(server.answer(request)["error_message"].get<std::string>().starts_with(
      "its network is not the one that the run began with"));
  request["row"] = "another";
  EXPECT_EQ(server.answer(request)["error_message"], "there is no such row");
}

TEST(RowServer, TellsTheTimeOfWrongResultsApart) {
  const auto make = [](Result& result) {
    result.first_steps.emplace();  // of an instance before
    verify_or_note(result, [] { throw Mismatch("it differs", 0.5, 0.25); });
    EXPECT_FALSE(result.first_steps) << "what was not verified is nothing to come to";
    return std::make_unique<Slow>();
  };
  RowServer server([&](const auto& /*name*/, const auto& /*configuration*/) {
    return RowServer::Source{.network = "", .make = make};
  });
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
