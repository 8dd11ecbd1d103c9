// SPDX-License-Identifier: Apache-2.0
// Rows that are made as a test says, on a CPU and a GPU that compute nothing, and a run of them.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rows/devices.h"
#include "rows/row.h"
#include "run/turns.h"
#include "worker/local_worker.h"

namespace crossover::test {

class MadeRows : public testing::Test {
 protected:
  using Names = std::vector<std::string>;
  using Make = std::function<std::unique_ptr<bench::PreparedBenchmark>(bench::Result& result)>;

  explicit MadeRows(const bench::Effort& effort) : effort_(effort) {
    initialize_benchmark(effort);
    for (const char* name : {"cpu", "cuda"}) {
      devices_.push_back(std::make_unique<bench::Device>());
      devices_.back()->kind = &backend_named(name);
    }
  }

  bench::Device& device_of(const std::string& device) { return *devices_[device == "cpu" ? 0 : 1]; }

  /// Of the device that it names. Its name.
  std::string add(bench::Row row, const std::string& pass, const Make& make) {
    row.device = &device_of(row.spec.device.value());
    std::string name = bench::row_name(row.spec);
    makes_[name] = make;
    plan_.push_back({.name = name, .pass = pass, .seconds = row.expected.all});
    rows_.add(std::move(row));
    return name;
  }

  /// A worker that holds nothing yet.
  std::unique_ptr<bench::Worker> worker() {
    return bench::local_worker([&](const std::string& name, const auto& /*spec*/) {
      return bench::RowServer::Source{
          .device = rows_[name].device, .network = rows_[name].network, .make = makes_.at(name)};
    });
  }

  /// `repetitions`: of each row.
  void run(bench::ScheduleOptions options, int repetitions, bench::Worker& worker,
           const std::function<void(double seconds)>& look_closer = {}) {
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    bench::Reporter reporter(rows_, plan_.size(), {});
    bench::Sampler sampler(rows_, reporter, spent_, worker,
                           {.min_time_seconds = effort_.min_time_seconds});
    options.limits.repetitions = repetitions;
    bench::Schedule schedule(std::move(options), spent_, rows_, plan_, has_networks(plan_));
    seconds_left_ = [&] { return schedule.seconds_left(); };
    bench::measure(schedule, spent_, rows_, sampler,
                   {.tell_answer = when_answered_, .look_closer = look_closer});
    seconds_left_ = {};
    testing::internal::GetCapturedStdout();
    said_ = testing::internal::GetCapturedStderr();
    left_open_ = schedule.left_open();
    unmeasured_ = reporter.unmeasured();
    EXPECT_EQ(held_, 0);
  }

  void begin_anew() {
    spent_ = {};
    rows_ = {};
    plan_.clear();
    makes_.clear();
  }

  int room_ = 100;  ///< rows that the memory holds at once
  int held_ = 0;
  bench::Rows rows_;
  std::vector<bench::PlannedRow> plan_;
  bench::Spent spent_;
  std::function<double()> seconds_left_;  ///< of the run that goes on
  std::function<void()> when_answered_;
  Names left_open_;
  std::string said_;
  std::size_t unmeasured_ = 0;

 private:
  bench::Effort effort_;
  std::vector<std::unique_ptr<bench::Device>> devices_;
  std::map<std::string, Make> makes_;  ///< by name
};

}  // namespace crossover::test
