// SPDX-License-Identifier: Apache-2.0
// A refinement between the sizes of two commands.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "file/earlier_run.h"
#include "rows/devices.h"
#include "rows/row.h"
#include "run/refine/refine.h"
#include "worker/worker.h"

namespace crossover::test {
namespace {

using namespace bench;
using Json = nlohmann::ordered_json;

/// Two commands whose runs take start + steps * step, with noise of a percent: the second starts
/// 2 s later, and wins a step above the size `crossing`.
class Commands {
 public:
  Commands(double crossing, std::uint64_t seed) : crossing_(crossing), random_(seed) {
    for (const std::int64_t size : {1000, 3981, 15849, 63096, 251189, 1000000}) {
      bring(size);
    }
    constexpr int repetitions = 9;
    for (const std::string& name : rows.names()) {
      std::generate_n(std::back_inserter(taken_[name]), repetitions, [&] { return seconds(name); });
    }
  }

  void bring(std::int64_t size) {
    for (const char* program : {"first", "second"}) {
      for (const std::int64_t steps : {10, 100}) {
        Row row{.spec = {.family = RowFamily::command,
                         .size = size,
                         .program = program,
                         .step_count = steps},
                .device = &cpu_,
                .worker = &other_};
        if (!rows.has(row_name(row.spec))) {
          rows.add(std::move(row));
        }
      }
    }
  }

  double seconds(const std::string& name) {
    const RowSpec& spec = rows[name].spec;
    const auto size = static_cast<double>(spec.size.value());
    const bool is_first = spec.program == "first";
    const double step = is_first ? 0.02 * size / crossing_ : 0.01 + 0.01 * size / crossing_;
    const double all = (is_first ? 0.1 : 2.1) + static_cast<double>(spec.step_count.value()) * step;
    return all * (1 + 0.01 * std::exponential_distribution<>()(random_));
  }

  Json refined() {
    Json last;
    refine(Refine::command, rows,
           {.repeat = [&](const std::string& name) { return std::optional(seconds(name)); },
            .finish = [&](const std::string& name) { finished.insert(name); },
            .renew = [] {},
            .seconds = [&](const std::string& name) { return taken_[name]; },
            .bring = [&](const std::string& size) { bring(std::stoll(size)); },
            .ladders = {}},
           {.seconds = 1e9}, [&](const Json& all) { last = all.back(); });
    return last;
  }

  Rows rows;
  std::set<std::string> finished;

 private:
  double crossing_;
  std::mt19937_64 random_;
  Device cpu_;
  LocalWorker other_{[](const Json&) { return Json(); }};
  std::map<std::string, std::vector<double>> taken_;
};

TEST(RefineRun, FindsFromWhichSizeACommandWinsAStep) {
  constexpr std::uint64_t runs = 200;
  std::uint64_t right = 0;
  for (std::uint64_t run = 0; run < runs; ++run) {
    const double crossing = std::pow(10, 3.2 + 2.6 * static_cast<double>(run) / runs);
    Commands commands(crossing, run);
    const Json json = commands.refined();
    ASSERT_EQ(json["kind"], "command");
    ASSERT_EQ(json["common"], Json({{"family", "Command"}}));
    ASSERT_EQ(json["second"], Json({{"program", "second"}}));
    EXPECT_TRUE(json["complete"]);
    ASSERT_EQ(commands.finished.size(), 4 * json["sizes"].size()) << "few and many, of both";
    const Json& found = json["intervals"];
    right += found.size() == 1 && found[0]["below"] == "first" && found[0]["low"].is_number() &&
                     found[0]["high"].is_number() && found[0]["low"] <= crossing &&
                     found[0]["high"] >= crossing && found[0]["high"] < 2 * crossing
                 ? 1
                 : 0;
  }
  RecordProperty("right", static_cast<int>(right));
  EXPECT_GE(right, runs * 95 / 100);
}

TEST(RefineRun, SizesOfCommandsGoOnAfterAnInterruption) {
  EarlierRun run;
  run.rows.push_back(
      {.name = "Command/size:5623/program:first/step_count:10",
       .facts = R"({"name": "x", "configuration": {"family": "Command", "size": "5623"}})",
       .entries = {R"({"run_type": "iteration", "real_time": 2, "cpu_time": 2})"}});
  EXPECT_EQ(
      earlier_sizes(run, [](const std::string& row) { return is_on_a_ladder(row, {}); }).models,
      std::vector<std::string>{"5623"});
}

}  // namespace
}  // namespace crossover::test
