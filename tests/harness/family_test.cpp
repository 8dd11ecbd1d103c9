// SPDX-License-Identifier: Apache-2.0
// A family whose rows count: planned, made, verified, measured in turns and kept in a file by the
// harness alone.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "crossover/verify.h"
#include "file/context.h"
#include "rows/devices.h"
#include "rows/row.h"
#include "run/options.h"
#include "run/plan.h"
#include "run/session.h"
#include "worker/local_worker.h"

namespace crossover::bench {
namespace {

using Json = nlohmann::ordered_json;

/// The sum of the numbers up to `size`, one by one.
class Counting : public PreparedBenchmark {
 public:
  explicit Counting(std::int64_t size) : size_(size) {}

  void run() override {
    sum_ = 0;
    for (std::int64_t number = 1; number <= size_; ++number) {
      sum_ = sum_ + number;
    }
  }

  void verify(std::int64_t sum) {
    run();
    if (sum_ != sum) {
      throw Mismatch("it counted to " + std::to_string(sum_));
    }
  }

 private:
  std::int64_t size_;
  volatile std::int64_t sum_ = 0;
};

/// "Command/size:1000": a row's configuration says all of it.
RowSpec counting_row(std::int64_t size) { return {.family = RowFamily::command, .size = size}; }

class CountingFamily : public testing::Test {
 protected:
  CountingFamily() {
    devices_.all.emplace_back();
    for (const std::int64_t size : {1'000, 10'000}) {
      plan_.push_back({.name = row_name(counting_row(size)), .pass = "Command", .seconds = 0.1});
    }
    options_.out = file_;
    initialize_benchmark(options_.effort);
  }
  ~CountingFamily() override { std::filesystem::remove(file_); }
  CountingFamily(const CountingFamily&) = delete;
  CountingFamily& operator=(const CountingFamily&) = delete;

  std::unique_ptr<PreparedBenchmark> make(std::int64_t size, Result& result) {
    ++made_;
    auto row = std::make_unique<Counting>(size);
    result.counters["count"] = static_cast<double>(size);
    result.counters["bytes"] = 0;
    verify_or_note(result, [&] {
      row->verify(size == wrong_ ? 0 : size * (size + 1) / 2);
      result.verification = {.reference = "formula"};
    });
    return row;
  }

  /// Whether all rows have a result.
  bool run() {
    Rows rows;
    for (const PlannedRow& planned : plan_) {
      const std::int64_t size = std::stoll(planned.name.substr(planned.name.find(':') + 1));
      rows.add({.spec = counting_row(size),
                .device = &devices_.cpu(),
                .expected = {.all = 0.1, .repetition = 0.01}});
    }
    const std::unique_ptr<Worker> worker =
        local_worker([&](const std::string& /*name*/, const RowSpec& row) -> RowServer::Source {
          return {.device = &devices_.cpu(),
                  .network = "",
                  .make = [this, size = row.size.value()](Result& result) {
                    return make(size, result);
                  }};
        });
    const std::vector<std::unique_ptr<Peer>> peers;
    Spent spent;
    Session session{
        .options = options_,
        .devices = devices_,
        .rows = rows,
        .worker = *worker,
        .peers = peers,
        .spent = spent,
        .remarks = {"it counts"},
        .networks = {},
        .ladders = {},
        .context =
            [&] { return context_json({"counting"}, "counting", options_.effort, devices_); },
        .add_size = {}};
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const bool is_complete = measure(session, plan_);
    testing::internal::GetCapturedStdout();
    said_ = testing::internal::GetCapturedStderr();
    return is_complete;
  }

  [[nodiscard]] Json written() const {
    std::ifstream file(file_);
    return Json::parse(file);
  }

  const std::string file_ =
      std::filesystem::temp_directory_path() / ("counting-" + std::to_string(getpid()) + ".json");
  /// As many repetitions as asked for, so no more of a row that other programs disturbed.
  RunOptions options_{
      .effort = {.repetitions = 6, .min_time_seconds = 1e-4}, .repetitions = 6, .most_passes = 3};
  std::vector<PlannedRow> plan_;
  std::int64_t wrong_ = 0;  ///< the size whose formula is wrong; 0: none
  int made_ = 0;            ///< instances
  std::string said_;        ///< on standard error

 private:
  Devices devices_;
};

TEST_F(CountingFamily, IsMeasuredInTurnsAndInstancesAndKept) {
  EXPECT_TRUE(run());
  EXPECT_EQ(made_, 6) << "each of two rows in each of three passes";
  EXPECT_NE(said_.find("bench: it counts\n"), std::string::npos) << said_;
  const Json file = written();
  const Json& context = file["context"]["crossover"];
  EXPECT_EQ(context["complete"], true);
  EXPECT_EQ(context["configuration"]["sweep"], "counting");
  EXPECT_TRUE(context["machine"]["cpu"]["cores"].is_number());
  EXPECT_FALSE(context.contains("networks"));
  ASSERT_EQ(file["rows"].size(), 2U);
  for (const Json& row : file["rows"]) {
    EXPECT_EQ(row["repetitions"], 6);
    EXPECT_EQ(row["verification"]["reference"], "formula");
  }
  EXPECT_EQ(file["benchmarks"].size(), 12U);
}

TEST_F(CountingFamily, GoesOnWithItsFile) {
  EXPECT_TRUE(run());
  made_ = 0;
  options_.resume = true;
  EXPECT_TRUE(run());
  EXPECT_EQ(made_, 0);
  EXPECT_NE(said_.find("is complete: no row is left to measure"), std::string::npos) << said_;
}

TEST_F(CountingFamily, SaysWhatItCountsWrongly) {
  wrong_ = 10'000;
  EXPECT_FALSE(run());
  const Json rows = written()["rows"];
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].value("error_message", ""), "");
  EXPECT_EQ(rows[1]["error_message"], "it counted to 50005000");
  EXPECT_GT(rows[1]["not_verified"]["seconds"], 0);
}

}  // namespace
}  // namespace crossover::bench
