// SPDX-License-Identifier: Apache-2.0
// crossover::two: what a program's sides come to in its result file, and which of them it refuses.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <complex>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "crossover/two.h"

namespace crossover::two {
namespace {

using Json = nlohmann::json;
using Numbers = std::vector<int>;
using std::chrono::milliseconds;

/// size, size - 1, ... 1.
Numbers falling(std::int64_t size) {
  Numbers numbers(static_cast<std::size_t>(size));
  std::iota(numbers.rbegin(), numbers.rend(), 1);
  return numbers;
}

void sort(Numbers& numbers) { std::ranges::sort(numbers); }

Numbers sorted(const Numbers& numbers) {
  Numbers copy = numbers;
  sort(copy);
  return copy;
}

Problem<Numbers> sorting() {
  Problem<Numbers> problem{.name = "sort", .sizes = {10, 100}, .make = falling};
  problem.side("first", sort);
  return problem;
}

/// A program's run, in this process.
class Two : public testing::Test {
 protected:
  ~Two() override { std::filesystem::remove(file_); }

  template <class... Problems>
  int run(const std::vector<std::string>& more, const Problems&... problems) {
    std::vector<std::string> words{
        "two",          "--in-process",  "--benchmark_repetitions=2", "--benchmark_min_time=1e-5",
        "--refine=off", "--out=" + file_};
    words.insert(words.end(), more.begin(), more.end());
    std::vector<char*> pointers;
    for (std::string& word : words) {
      pointers.push_back(word.data());
    }
    std::filesystem::remove(file_);
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int code = measure(static_cast<int>(pointers.size()), pointers.data(), problems...);
    printed_ = testing::internal::GetCapturedStdout();
    said_ = testing::internal::GetCapturedStderr();
    if (std::ifstream file(file_); file) {
      written_ = Json::parse(file);
    } else if (std::ifstream partial(file_ + ".partial"); partial) {
      written_ = Json::parse(partial);
    }
    return code;
  }

  /// By what its configuration says.
  Json row(const std::string& side, const std::string& size = "10") {
    for (const Json& row : written_["rows"]) {
      const Json& configuration = row["configuration"];
      if (configuration["side"] == side && configuration["size"] == size &&
          !configuration.contains("transfers")) {
        return row;
      }
    }
    return {};
  }

  /// How the row ended, in a sentence; it has no times.
  std::string error_of(const std::string& side) {
    const Json found = row(side);
    EXPECT_EQ(found.value("outcome", ""), "failed") << found;
    EXPECT_FALSE(found.contains("not_verified")) << found;
    for (const Json& entry : written_["benchmarks"]) {
      EXPECT_NE(entry["name"], found["name"]);
    }
    return found.value("error_message", "");
  }

  const std::string file_ =
      std::filesystem::temp_directory_path() / ("two-" + std::to_string(getpid()) + ".json");
  Json written_;
  std::string printed_, said_;
};

TEST_F(Two, SidesOfAllFormsAreComparedAndTimed) {
  Problem<Numbers> problem = sorting();
  std::atomic<bool> was_sorted = false;
  problem.side("in place", [&](Numbers& numbers) {
    was_sorted = was_sorted || std::ranges::is_sorted(numbers);
    sort(numbers);
  });
  problem.side("returns", sorted);
  problem.side("fills", [](const Numbers& input, Numbers& output) { output = sorted(input); });
  EXPECT_EQ(run({}, problem), 0) << said_;
  EXPECT_FALSE(was_sorted) << "an input is restored before each call";
  ASSERT_EQ(written_["rows"].size(), 8U);
  for (const Json& row : written_["rows"]) {
    EXPECT_EQ(row["repetitions"], 2);
    EXPECT_EQ(row["verification"]["reference"], "the result of first");
    EXPECT_EQ(row["configuration"]["size"], row["verification"]["entries"].dump());
  }
  EXPECT_EQ(written_["benchmarks"].size(), 16U);
  EXPECT_GT(written_["benchmarks"][0]["first_call_seconds"], 0);
  EXPECT_EQ(written_["context"]["executable"], "two");
  EXPECT_EQ(written_["context"]["crossover"]["software"]["commit"], "");
}

TEST_F(Two, AWrongResultHasASentenceAndNoTimes) {
  Problem<Numbers> problem = sorting();
  problem.side("wrong", [](const Numbers& input) {
    Numbers numbers = sorted(input);
    numbers[5] = 7;
    return numbers;
  });
  problem.side("short", [](const Numbers& /*input*/) { return Numbers(3); });
  EXPECT_EQ(run({"--benchmark_filter=size:10/"}, problem), 1);
  EXPECT_EQ(error_of("wrong"), "its result is wrong: entry 5 is 7, not 6");
  EXPECT_EQ(error_of("short"), "its result is wrong: it has 3 entries, not 10");
  EXPECT_EQ(row("first")["repetitions"], 2);
}

TEST_F(Two, AResultThatBecomesWrongIsCaught) {
  Problem<Numbers> problem = sorting();
  problem.side("forgetful", [calls = 0](const Numbers& input) mutable {
    constexpr int of_checks = 20;
    Numbers numbers = sorted(input);
    numbers[0] += ++calls > of_checks ? 1 : 0;
    return numbers;
  });
  EXPECT_EQ(run({"--benchmark_min_time=1e-3", "--benchmark_filter=size:10/"}, problem), 1);
  EXPECT_EQ(error_of("forgetful"), "its result is wrong after several calls: entry 0 is 2, not 1");
}

TEST_F(Two, WhatTheProblemSaysIsRightHoldsForTheFirstSideToo) {
  Problem<Numbers> problem = sorting();
  problem.right = [](const Numbers& input) { return input; };
  EXPECT_EQ(run({"--benchmark_filter=size:10/"}, problem), 1);
  EXPECT_EQ(error_of("first"), "its result is wrong: entry 0 is 1, not 10");
}

TEST_F(Two, ASideWhoseResultChangesBehindTheCallIsCaught) {
  std::vector<std::thread> workers;
  Problem<Numbers> problem = sorting();
  problem.side("late", [&](Numbers& numbers) {
    workers.emplace_back([&numbers] {
      std::this_thread::sleep_for(milliseconds(5));
      sort(numbers);
    });
  });
  EXPECT_EQ(run({}, problem), 1);
  for (std::thread& worker : workers) {
    worker.join();
  }
  EXPECT_NE(error_of("late").find("it returns before its work is done: its result changed"),
            std::string::npos)
      << error_of("late");
}

/// A device whose calls return before their work is done; a copy of its result waits for that. The
/// work is done by whoever waits: a thread of its own would come late on a busy machine.
struct Queue {
  static inline std::shared_future<void> work;
  static inline int waits = 0;
  static void wait() {
    ++waits;
    if (work.valid()) {
      work.wait();
    }
  }

  explicit Queue(const Numbers& input) : numbers(input.size()) {}
  void copy_in(const Numbers& input) { numbers = input; }
  void run() {
    work = std::async(std::launch::deferred, [this] {
      std::this_thread::sleep_for(milliseconds(3));
      sort(numbers);
    });
  }
  void copy_out(Numbers& result) {
    work.wait();
    result = numbers;
  }

  Numbers numbers;
};

TEST_F(Two, ASideWhoseCopyWaitsForItsWorkIsCaught) {
  Problem<Numbers> problem = sorting();
  problem.side<Queue>("not waited for", gpu("a queue", {}));
  EXPECT_EQ(run({"--benchmark_filter=size:10/"}, problem), 1);
  EXPECT_NE(error_of("not waited for").find("the copy of its result waits for"), std::string::npos)
      << error_of("not waited for");
}

TEST_F(Two, ADeviceIsWaitedForWithAndWithoutCopies) {
  Problem<Numbers> problem = sorting();
  constexpr double by_its_clock = 0.0025;
  const auto by_device = [&](const std::function<void()>& call) {
    call();
    Queue::wait();
    return by_its_clock;
  };
  Device queue = gpu("a queue", Queue::wait);
  queue.seconds = by_device;
  problem.side<Queue>("queue", queue);
  EXPECT_EQ(run({"--benchmark_filter=size:10/"}, problem), 0) << said_;
  EXPECT_GT(Queue::waits, 0);
  EXPECT_EQ(written_["context"]["crossover"]["machine"]["gpu"]["name"], "a queue");
  std::map<std::string, Json> entries;
  for (const Json& entry : written_["benchmarks"]) {
    entries.emplace(entry["name"], entry);
  }
  const std::string name = "Function/size:10/device:gpu/problem:sort/side:queue";
  ASSERT_TRUE(entries.contains(name) && entries.contains(name + "/transfers:each"));
  const Json& stays = entries[name];
  EXPECT_GT(stays["wait_seconds"], stays["call_seconds"]);
  EXPECT_TRUE(stays.contains("copy_in_seconds") && stays.contains("copy_out_seconds"));
  EXPECT_EQ(stays["device_seconds"], by_its_clock);
  EXPECT_FALSE(stays.contains("back_to_back_seconds")) << "a sort has to be restored before each";
}

/// A queue of a device that has several, all of which its wait() waits for.
struct Lane {
  static inline std::vector<std::shared_ptr<Lane>> all;
  static std::shared_ptr<Lane> made() { return all.emplace_back(std::make_shared<Lane>()); }
  static void wait() {
    for (const auto& lane : all) {
      if (lane->work.valid()) {
        lane->work.wait();
      }
    }
  }
  std::shared_future<void> work;
};

struct OnLane {
  OnLane(const Numbers& input, std::shared_ptr<Lane> handed)
      : lane(std::move(handed)), numbers(input.size()) {}
  void copy_in(const Numbers& input) { numbers = input; }
  void run() {
    lane->work = std::async(std::launch::deferred, [this] {  // in wait()
      std::this_thread::sleep_for(milliseconds(3));
      sort(numbers);
    });
  }
  void copy_out(Numbers& result) const { result = numbers; }

  std::shared_ptr<Lane> lane;
  Numbers numbers;
};

struct OnItsOwnLane : OnLane {
  explicit OnItsOwnLane(const Numbers& input) : OnLane(input, Lane::made()) {}
};

TEST_F(Two, AStreamIsHandedInAndTheWholeDeviceIsWaitedFor) {
  Problem<Numbers> problem = sorting();
  const std::shared_ptr<Lane> handed = Lane::made();
  Device device = gpu("lanes", Lane::wait);
  device.stream = [handed] { return handed; };
  constexpr double by_its_clock = 1e-3;  // which sees the work of that one alone
  device.seconds = [&](const std::function<void()>& call) {
    handed->work = {};
    call();
    if (handed->work.valid()) {
      handed->work.wait();
    }
    return by_its_clock;
  };
  problem.side<OnLane>("handed", device);
  problem.side<OnItsOwnLane>("its own", device);
  EXPECT_EQ(run({"--benchmark_filter=size:10/"}, problem), 0) << said_;
  std::map<std::string, Json> entries;
  for (const Json& entry : written_["benchmarks"]) {
    entries.emplace(entry["name"], entry);
  }
  const std::string sides = "Function/size:10/device:gpu/problem:sort/side:";
  for (const std::string side : {"handed", "its own"}) {
    EXPECT_GT(entries[sides + side]["wait_seconds"], entries[sides + side]["call_seconds"]) << side;
  }
  EXPECT_EQ(entries[sides + "handed"]["device_seconds"], by_its_clock);
  EXPECT_FALSE(entries[sides + "its own"].contains("device_seconds")) << "work behind its clock";
  Lane::all.clear();
}

TEST_F(Two, AStreamThatCanNotBeHandedInIsASentence) {
  Problem<Numbers> problem = sorting();
  Device device = gpu("lanes", Lane::wait);
  problem.side<OnLane>("none", device);
  device.stream = [] { return 7; };
  problem.side<OnLane>("another", device);
  EXPECT_EQ(run({"--benchmark_filter=size:10/"}, problem), 1);
  EXPECT_EQ(error_of("none"),
            "its constructor takes a stream, and its device has none; set the device's stream in "
            "the program");
  EXPECT_EQ(error_of("another"),
            "its constructor takes a stream of another type than its device's; correct one of them "
            "in the program");
}

/// A device that takes as long for many calls as for one.
struct Batch : Queue {
  static constexpr bool keeps_input = true;
  using Queue::Queue;
  void run() {
    if (!work.valid() || work.wait_for(milliseconds(0)) == std::future_status::ready) {
      Queue::run();
    }
  }
};

TEST_F(Two, CallsBackToBackStandBesideTheOneThatIsWaitedFor) {
  Problem<Numbers> problem = sorting();
  problem.items = [](std::int64_t size) { return static_cast<double>(size); };
  problem.bytes = [](std::int64_t size) { return 8.0 * static_cast<double>(size); };
  problem.side<Batch>("batch", gpu("a queue", Queue::wait));
  EXPECT_EQ(run({"--benchmark_filter=size:10/"}, problem), 0) << said_;
  for (const Json& entry : written_["rows"]) {
    EXPECT_EQ(entry["items"], 10) << entry;
    EXPECT_EQ(entry["bytes"], 80);
  }
  const Json batch = row("batch");
  const auto entry = std::ranges::find_if(
      written_["benchmarks"], [&](const Json& of) { return of["name"] == batch["name"]; });
  EXPECT_LT((*entry)["back_to_back_seconds"], (*entry)["wait_seconds"]);
  problem.bytes = [](std::int64_t /*size*/) { return 0.0; };
  EXPECT_EQ(run({"--benchmark_filter=size:10/"}, problem), 1);
  EXPECT_EQ(error_of("first"),
            "its problem says that a call has 0 bytes; correct that in the program");
}

TEST_F(Two, CachesAreFlushedBeforeEachCall) {
  Problem<Numbers> problem = sorting();
  int flushes = 0;
  Device queue = gpu("a queue", Queue::wait);
  problem.side<Queue>("queue", queue);
  EXPECT_EQ(run({"--caches=flushed"}, problem), 2);
  EXPECT_EQ(said_,
            "two: --caches=flushed: nobody can flush the GPU of side 'queue'; give its device a "
            "flush, or leave out the flag\n");
  problem = sorting();
  queue.flush = [&] { ++flushes; };
  problem.side<Queue>("queue", queue);
  EXPECT_EQ(run({"--caches=flushed", "--benchmark_filter=size:10/.*queue/caches"}, problem), 0)
      << said_;
  ASSERT_EQ(written_["benchmarks"].size(), 2U);
  EXPECT_EQ(written_["benchmarks"][0]["iterations"], 1) << "a repetition is one call";
  EXPECT_GE(flushes, 2);
  EXPECT_EQ(row("queue")["configuration"]["caches"], "flushed");
}

TEST_F(Two, AMissingDeviceLeavesItsSidesOut) {
  Problem<Numbers> problem = sorting();
  problem.side<Queue>("queue", {.kind = "gpu", .missing = "no GPU: none was found"});
  EXPECT_EQ(run({}, problem), 0);
  EXPECT_NE(said_.find("two: no GPU rows: no GPU: none was found\n"), std::string::npos) << said_;
  EXPECT_EQ(written_["rows"].size(), 2U);
}

TEST_F(Two, SaysWhatIsWrongInTheProgramOrItsFlags) {
  Problem<Numbers> problem = sorting();
  EXPECT_EQ(run({"--benchmark_filters=x"}, problem), 2);
  EXPECT_EQ(said_,
            "two: unknown argument '--benchmark_filters=x'; did you mean --benchmark_filter?\n");
  problem.side("first", sort);
  EXPECT_EQ(run({}, problem), 2);
  EXPECT_EQ(said_, "two: two sides are called 'first' in problem 'sort'; give one another name\n");
  problem = sorting();
  problem.name = "a/b";
  EXPECT_EQ(run({}, problem), 2);
  EXPECT_NE(said_.find("'a/b', has to have 1 to 60 characters, without '/'"), std::string::npos);
  problem = sorting();
  problem.sizes = {0};
  EXPECT_EQ(run({}, problem), 2);
  EXPECT_NE(said_.find("has the size 0; sizes are from 1"), std::string::npos);
}

// ---- equal

constexpr double none = std::numeric_limits<double>::quiet_NaN();
constexpr double infinite = std::numeric_limits<double>::infinity();

TEST(Equal, NumbersWithinTheTolerance) {
  using Reals = std::vector<double>;
  EXPECT_EQ(difference(Reals{1, 200}, Reals{1, 200}, 0).words, "");
  EXPECT_EQ(difference(Reals{1.01, 200}, Reals{1, 200}, 1e-4).words, "");
  EXPECT_EQ(difference(Reals{1.5, 200}, Reals{1, 200}, 1e-4).words,
            "entry 0 is 1.5, not 1 (relative error 0.0025, tolerance 0.0001)");
  EXPECT_EQ(difference(Reals{none, infinite}, Reals{none, infinite}, 0).words, "");
  EXPECT_NE(difference(Reals{none}, Reals{1}, 1).words, "");
  EXPECT_NE(difference(Reals{infinite}, Reals{1}, 1e300).words, "");
  EXPECT_NE(difference(Reals{1e-30}, Reals{0}, 1).words, "") << "what is right is 0";
  using Complex = std::vector<std::complex<float>>;
  EXPECT_EQ(difference(Complex{{1, 1e-6F}}, Complex{{1, 0}}, 1e-5).words, "");
}

TEST(Equal, AllElseExactly) {
  EXPECT_EQ(difference(std::string("abc"), std::string("abd"), 1).words, "entry 0 is abc, not abd");
  EXPECT_EQ(difference(1'000'001, 1'000'000, 1).words, "entry 0 is 1000001, not 1000000");
  using Rows = std::vector<std::vector<int>>;
  EXPECT_EQ(difference(Rows{{1}, {2, 3}}, Rows{{1}, {2, 4}}, 1).words, "entry 2 is 3, not 4");
}

TEST(Range, EndsWhereItIsToldTo) {
  EXPECT_EQ(range(1000, 16000), (std::vector<std::int64_t>{1000, 4000, 16000}));
  EXPECT_EQ(range(7, 7), (std::vector<std::int64_t>{7}));
}

}  // namespace
}  // namespace crossover::two
