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
#include "rows/devices.h"
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
    worker_that(does)->ask({{"do", "repeat"}, {"row", "it"}}, limit_seconds);
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
            std::string(
                "the worker's process answered what is no object of JSON, or is nested too deeply: "
                "[]"));
  const std::string times = R"("cpu_time":1,"iterations":1)";
  EXPECT_EQ(how(R"({"times":{"real_time":"fast",)" + times + "}}").what(),
            nonsense + "'times.real_time' is not a number): {\"times\":{\"real_time\":\"fast\"," +
                times + "}}");
  for (const char* answer :
       {R"({"times":[]})", R"({"outcome":"perhaps"})", R"({"outcome":"failed","error_message":1})",
        R"({"outcome":"failed","spent":{"timed":"long"}})", R"({"device_failed":true})",
        R"({"times":{"real_time":1,"cpu_time":1,"iterations":0}})",
        R"({"times":{"real_time":1,"cpu_time":1,"iterations":1},"doubts":[1]})"}) {
    EXPECT_TRUE(std::string(how(answer).what()).starts_with(nonsense)) << answer;
  }
}

TEST(WorkerProcess, WhoseAnswerHasNoEndIsLost) {
  EXPECT_STREQ(end_of("cat /dev/zero", 60).what(),
               "the worker's process answered 'repeat' with a line of over 16 MB");
  const std::string deep = "printf '{\"doubts\":'; head -c 200000 /dev/zero | tr '\\0' '['; echo";
  EXPECT_TRUE(std::string(end_of(deep, 60).what())
                  .ends_with(R"(deeply: {"doubts":)" + std::string(70, '[')));
  // It may say what it is at 200 times a second of the patience, and not without end.
  const WorkerEnded end = end_of(R"(while :; do echo '{"doing": "it"}'; done)", 0.5);
  EXPECT_STREQ(end.what(),
               "the worker's process said what it is doing for 100 times 0.5 s, and did not answer "
               "while it");
  EXPECT_TRUE(end.hung);
}

TEST(WorkerProcess, ThatFillsItsStandardErrorIsKilledInTime) {
  testing::internal::CaptureStderr();
  const WorkerEnded end = end_of("cat /dev/zero >&2");
  testing::internal::GetCapturedStderr();
  EXPECT_STREQ(end.what(), "the worker's process did not answer within 0.5 s");
}

TEST(WorkerProcess, ThatClosesItsOutputAndStaysIsKilledInTime) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_STREQ(end_of("exec >&-; exec sleep 100").what(),
               "the worker's process was ended by a signal (Killed)");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(50));
}

std::string fault_of_answer(const char* request, const char* answer) {
  const Json whole = {{"do", request},
                      {"row", "Copy/it"},
                      {"configuration",
                       {{"family", "Copy"},
                        {"device", "cpu"},
                        {"cpu_threads", "1"},
                        {"bytes", "1"},
                        {"direction", "h2h"},
                        {"mode", "sync"}}}};
  return fault_of(whole, Json::parse(answer));
}

TEST(Answers, AreAsTheProtocolSays) {
  const auto& fault = fault_of_answer;
  EXPECT_EQ(fault("rows", "{}"), "'rows' is missing");
  EXPECT_EQ(fault("rows", R"({"rows":[{"configuration":{"family":1}}]})"),
            "'configuration' is not an object of texts");
  EXPECT_EQ(fault("rows", R"({"rows":[1]})"), "'configuration' is missing");
  EXPECT_EQ(fault("prepare", R"({"facts":{},"once":[]})"), "'once' is not an object");
  EXPECT_EQ(fault("prepare", R"({"outcome":"skipped","error_message":"too large"})"), "");
  EXPECT_EQ(fault("release", "{}"), "");
  EXPECT_EQ(fault("check", R"({"verdict":"ok"})"), "'reason' is missing");
}

TEST(Answers, AreAsResultFilesHaveThem) {
  const auto of_facts = [](const std::string& more) {
    const std::string usual =
        R"("count":1,"bytes":8,"verification":{"reference":"r","tolerance":1,"relative_error":0})";
    return fault_of_answer("prepare", (R"({"facts":{)" + usual + more + R"(},"once":{}})").c_str());
  };
  EXPECT_EQ(of_facts(""), "");
  EXPECT_EQ(fault_of_answer("prepare", R"({"facts":{},"once":{}})"), "'facts.count' is missing");
  EXPECT_EQ(of_facts(R"(,"label":5)"), "'facts.label' is not a text");
  EXPECT_EQ(of_facts(R"(,"name":"x")"), "'facts.name' is what bench says itself");
  EXPECT_EQ(of_facts(R"(,"flops":"x")"), "'facts.flops' is not a number");
  EXPECT_EQ(of_facts(R"(,"loss_first_step":null)"), "'facts.loss_first_step' is not a number");
  EXPECT_EQ(of_facts(R"(,"joules":1)"),
            "'facts.joules' is no fact of a row, so it belongs into 'times'");
  EXPECT_EQ(of_facts(R"(,"params":1e300)"),
            "'facts.params' is neither 0 nor a number from 1e-60 to 1e40");
  EXPECT_EQ(of_facts(R"(,"x":")" + std::string(70'000, 'x') + "\""),
            "'facts.x' is a text of more than 65536 bytes");
  EXPECT_EQ(of_facts(R"(,"workload":"x")"), "'facts.workload' does not match ^[0-9a-f]{16}$");
  EXPECT_EQ(of_facts(R"(,"chosen":{"execution":"eager","x":1})"), "'facts.chosen.x' is not a text");
  EXPECT_EQ(of_facts(R"(,"chosen":{"execution":"eager"})"), "");
  EXPECT_EQ(of_facts(R"(,"chosen":{"execution":"eager","x":"y"})"),
            "'facts.chosen': no axis 'x'; add it to the table in bench/axes/axes.cpp");
  EXPECT_EQ(of_facts(R"(,"verification":{"reference":"r","tolerance":1,"relative_error":2})"),
            "'facts.verification.relative_error' is above the tolerance");
  const std::string facts =
      R"({"count":1,"bytes":8,"verification":{"reference":"r","tolerance":0,"relative_error":0}})";
  EXPECT_EQ(
      fault_of_answer("prepare", ("{\"facts\":" + facts + R"(,"once":{"real_time":1}})").c_str()),
      "'once.real_time' is what bench says itself");
  const auto of_times = [](const std::string& times) {
    const std::string usual = R"("cpu_time":1,"iterations":1,)";
    return fault_of_answer("repeat", (R"({"times":{)" + usual + times + "}}").c_str());
  };
  EXPECT_EQ(of_times(R"("real_time":1,"CYCLES":2)"), "");
  EXPECT_EQ(of_times(R"("real_time":0)"), "'times.real_time' is not above 0");
  EXPECT_EQ(of_times(R"("real_time":1e-20)"), "'times.real_time' is no time that anything takes");
  EXPECT_EQ(of_times(R"("real_time":1,"params":2)"),
            "'times.params' is a fact of the row, so it belongs into 'facts'");
  EXPECT_EQ(of_times(R"("real_time":1,"instance":2)"),
            "'times.instance' is what bench says itself");
  EXPECT_EQ(of_times(R"("real_time":1,"seconds_per_epoch":2)"),
            "'times.seconds_per_epoch' is no counter that bench knows, and begins like its own");
  EXPECT_EQ(of_times(R"("real_time":1,"time_unit":"s")"), "'times.time_unit' is not ms");
  EXPECT_EQ(of_times(R"("real_time":1,"iterations":1e30)"),
            "'times.iterations' is not a whole number");
  EXPECT_EQ(fault_of_answer("prepare", R"({"outcome":"failed","not_verified":{"x":1}})"),
            "'not_verified.seconds' is missing");
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
  const Device cpu;
  RowServer server([&](const auto& /*name*/, const auto& /*configuration*/) {
    return RowServer::Source{.device = &cpu, .network = "", .make = [&](Result& /*result*/) {
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
  const Device cpu;
  static constexpr int of_a_repetition = 100'000;
  RowServer server([&](const auto& /*name*/, const auto& /*configuration*/) {
    return RowServer::Source{.device = &cpu, .network = "", .make = [](Result&) {
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

TEST(RowServer, RepeatsNothingThatIsNotPrepared) {
  RowServer server([](const std::string& /*name*/, const auto& /*configuration*/) {
    return RowServer::Source{.network = "",
                             .make = [](Result& /*result*/) { return std::make_unique<Slow>(); }};
  });
  const Json repeat = {{"do", "repeat"}, {"row", "it"}, {"min_time_seconds", 1e-3}};
  EXPECT_THROW(server.answer(repeat), std::invalid_argument);
  server.answer({{"do", "prepare"}, {"row", "it"}, {"configuration", Json::object()}});
  server.answer({{"do", "release"}, {"row", "it"}});
  EXPECT_THROW(server.answer(repeat), std::invalid_argument);
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
