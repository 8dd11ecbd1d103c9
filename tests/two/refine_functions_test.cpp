// SPDX-License-Identifier: Apache-2.0
// A refinement between the sizes of functions.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "rows/devices.h"
#include "rows/row.h"
#include "run/refine/refine.h"

namespace crossover::test {
namespace {

using namespace bench;
using Json = nlohmann::ordered_json;

struct TimedSide {
  std::string device, side;
  bool copies = false;
  double start = 0, of_size = 0;  ///< seconds
  std::string problem = "sort";
};

/// Rows that take start + size * of_size, with noise of a percent.
class Functions {
 public:
  explicit Functions(std::vector<TimedSide> sides) : sides_(std::move(sides)) {
    add_function_axes();
    for (const std::int64_t size : {1000, 4000, 16000, 64000, 256000}) {
      bring(size);
    }
    for (const std::string& name : rows.names()) {
      for (int repetition = 0; repetition < 9; ++repetition) {
        taken_[name].push_back(seconds(name));
      }
    }
  }

  /// Of each problem.
  Json refined() {
    Json told;
    refine(Refine::function, rows,
           {.repeat = [&](const std::string& name) { return std::optional(seconds(name)); },
            .finish = [](const std::string& /*name*/) {},
            .renew = [] {},
            .seconds = [&](const std::string& name) { return taken_[name]; },
            .bring = [&](const std::string& size) { bring(std::stoll(size)); },
            .ladders = {}},
           {.seconds = 1e9}, [&](const Json& json) { told = json; });
    return told;
  }

  Rows rows;

 private:
  void bring(std::int64_t size) {
    for (const TimedSide& side : sides_) {
      RowSpec spec{.family = RowFamily::function,
                   .size = size,
                   .device = side.device,
                   .others = {{problem_key, side.problem}, {side_key, side.side}}};
      if (side.copies) {
        spec.others[transfers_key] = transfers_each;
      }
      seconds_[row_name(spec)] = side.start + static_cast<double>(size) * side.of_size;
      rows.add({.spec = spec, .device = &device_});
    }
  }
  double seconds(const std::string& name) {
    return seconds_.at(name) * (1 + 0.01 * std::exponential_distribution<>()(random_));
  }

  std::vector<TimedSide> sides_;
  Device device_;
  std::mt19937_64 random_{1};
  std::map<std::string, double> seconds_;
  std::map<std::string, std::vector<double>> taken_;
};

/// From the last sure win of the first side to the first of the second.
void expect_around(const Json& refined, double crossing) {
  ASSERT_EQ(refined["intervals"].size(), 1U) << refined;
  const Json& interval = refined["intervals"][0];
  EXPECT_EQ(interval["below"], "first");
  EXPECT_LE(interval["low"].get<double>(), crossing);
  EXPECT_GE(interval["high"].get<double>(), crossing);
  EXPECT_LT(interval["high"].get<double>(), 2 * crossing);
}

TEST(RefineFunctions, FindsWhereTheGpuWinsThatHasItsDataThere) {
  Functions functions({{.device = "cpu", .side = "slow", .of_size = 2e-8},
                       {.device = "cpu", .side = "fast", .of_size = 1e-8},
                       {.device = "gpu", .side = "gpu", .start = 1e-4, .of_size = 1e-9},
                       {.device = "gpu", .side = "gpu", .copies = true, .start = 2e-4}});
  const Json refined = functions.refined().at(0);
  EXPECT_EQ(refined["kind"], "function");
  EXPECT_EQ(refined["common"], Json({{"family", "Function"}, {"problem", "sort"}}));
  EXPECT_EQ(refined["first"], Json({{"device", "cpu"}, {"side", "fast"}}));
  EXPECT_EQ(refined["second"], Json({{"device", "gpu"}, {"side", "gpu"}}));
  expect_around(refined, 1e-4 / 9e-9);
}

TEST(RefineFunctions, OnOneDeviceLooksWhereTheWinnerChanges) {
  Functions functions({{.device = "cpu", .side = "first", .of_size = 1e-8},
                       {.device = "cpu", .side = "slower", .of_size = 2e-8},
                       {.device = "cpu", .side = "threads", .start = 2e-4, .of_size = 5e-9}});
  const Json refined = functions.refined().at(0);
  EXPECT_EQ(refined["second"], Json({{"device", "cpu"}, {"side", "threads"}}));
  expect_around(refined, 2e-4 / 5e-9);
}

TEST(RefineFunctions, LooksAtEachProblem) {
  Functions functions({{.device = "cpu", .side = "cpu", .of_size = 1e-8},
                       {.device = "gpu", .side = "gpu", .start = 1e-4},
                       {.device = "cpu", .side = "cpu", .of_size = 1e-8, .problem = "fft"},
                       {.device = "gpu", .side = "gpu", .start = 3e-4, .problem = "fft"}});
  const Json refined = functions.refined();
  ASSERT_EQ(refined.size(), 2U);
  for (const Json& each : refined) {
    expect_around(each, each["common"]["problem"] == "sort" ? 1e4 : 3e4);
  }
}

}  // namespace
}  // namespace crossover::test
