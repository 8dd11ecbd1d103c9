// SPDX-License-Identifier: Apache-2.0
// A refinement on rows that are registered as ever and measured by a formula.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "../bench/axes/flag.h"
#include "../bench/command_line/arguments.h"
#include "../bench/families/families.h"
#include "../bench/families/networks.h"
#include "../bench/file/earlier_run.h"
#include "../bench/rows/row.h"
#include "../bench/run/refine/refine.h"
#include "../bench/worker/worker.h"
#include "crossover/catalogue.h"

namespace crossover::test {
namespace {

using namespace bench;
using Json = nlohmann::ordered_json;

/// wide-16, wide-64 and so on to wide-4096: one hidden layer of so many units. Between them,
/// wide-16x1.25 has 20.
Family wide_family() {
  const auto width_of = [](const std::string& name) {
    const std::size_t times = name.find('x');
    const double factor = times == std::string::npos ? 1 : std::stod(name.substr(times + 1));
    return static_cast<std::int64_t>(std::stod(name.substr(name.find('-') + 1)) * factor);
  };
  const auto make = [width_of](const std::string& name) {
    Task task = disc_family().make("disc-2");
    task.model = mlp(name, {2, width_of(name), 2}, Activation::relu);
    return task;
  };
  const auto sizes = [width_of] {
    std::vector<LadderSize> all;
    for (const char* rung : {"wide-16", "wide-64", "wide-256", "wide-1024"}) {
      for (const char* factor : {"", "x1.25", "x1.5", "x1.75", "x2", "x2.5", "x3", "x3.5"}) {
        const std::string name = std::string(rung) + factor;
        all.push_back({.name = name, .parameters = 5 * width_of(name) + 2});
      }
    }
    all.push_back({.name = "wide-4096", .parameters = 5 * 4096 + 2});
    return all;
  };
  return {.names = {"wide-16", "wide-64", "wide-256", "wide-1024", "wide-4096"},
          .make = make,
          .also = [](const std::string& name) { return name.starts_with("wide-"); },
          .ladder = "wide",
          .sizes = sizes};
}

bool is_on_disc(const std::string& row) { return is_on_a_ladder(row, ladders_of()); }

std::vector<Family> both_ladders() { return {disc_family(), wide_family()}; }

double parameters(const Row& row) {
  const std::string& model = row.spec.model.value();
  for (const LadderSize& size : sizes_of(ladder_of(model, both_ladders()), both_ladders())) {
    if (size.name == model) {
      return static_cast<double>(size.parameters);
    }
  }
  return 0;
}

/// A machine on which two threads overtake one at 5,000 parameters, and a GPU's graph the CPU at
/// 50,000.
class Formula {
 public:
  explicit Formula(const std::vector<std::string>& words, bool with_gpu = false,
                   const std::vector<std::string>& of_second_ladder = {})
      : arguments_(parse(words)) {
    devices_ = find_devices({{"cuda", DeviceUse::off}});
    for (const std::string& name : of_second_ladder) {
      arguments_.tasks.push_back(wide_family().make(name));
    }
    if (with_gpu) {
      devices_.all.push_back(planned_device(backend_named("cuda")));
    }
    register_epochs(arguments_, devices_, rows);
    for (const std::string& name : rows.names()) {
      taken[name] = std::vector<double>(9, seconds(name));
    }
  }

  double seconds(const std::string& name) {
    const Row& row = rows[name];
    if (row.worker == &other_) {
      RowSpec own = row.spec;
      own.program = RowSpec().program;
      const double times = parameters(row) < other_overtakes_at ? other_takes : 1 / other_takes;
      return times * seconds(row_name(own));
    }
    const double size = parameters(row);
    if (row.spec.device == "cpu") {
      return row.spec.threads > 1 ? 1e-4 * std::pow(size / 5000, 0.8) + 1e-4
                                  : 2e-4 * std::pow(size / 5000, 0.9);
    }
    const double own = 1e-4 * std::pow(50000 / 5000.0, 0.8) + 1e-4;
    const bool is_fast =
        row.spec.execution == Execution::graph || row.spec.execution == Execution::automatic;
    return own * (is_fast ? 1 : 1.5) * (row.spec.placement == Placement::resident ? 1 : 2);
  }

  /// A row of another program, which takes `other_takes` as long.
  void add_other(const std::string& name) {
    Row row = rows[name];
    row.spec.program = "other";
    row.worker = &other_;
    const std::string own = row_name(row.spec);
    rows.add(std::move(row));
    taken[own] = std::vector<double>(9, seconds(own));
  }

  [[nodiscard]] std::optional<Contest> contest(Refine kind, int cores = 2) {
    std::vector<Contest> found = find_contests(
        kind, rows, [&](const std::string& name) { return taken[name]; }, cores,
        ladders_of(both_ladders()));
    return found.empty() ? std::nullopt : std::optional(std::move(found.front()));
  }

  Json refined(Refine kind, const RefineLimits& limits = {},
               const std::vector<std::string>& models = {}) {
    Json last;
    refine(kind, rows,
           {.repeat =
                [&](const std::string& name) {
                  order.push_back(name);
                  rows[name].record.facts = facts;
                  return std::optional(seconds(name));
                },
            .finish = [&](const std::string& name) { finished.push_back(name); },
            .renew = [] {},
            .seconds = [&](const std::string& name) { return taken[name]; },
            .bring =
                [&](const std::string& model) {
                  add_size(model, arguments_, devices_, rows, both_ladders());
                },
            .ladders = ladders_of(both_ladders()),
            .join =
                [&](const std::string& name) {
                  if (other_answers) {
                    add_other(name);
                  }
                },
            .models = models},
           limits, [&](const Json& all) { last = all.back(); });
    return last;
  }

  double other_takes = 1;
  double other_overtakes_at = 1e9;  ///< parameters
  bool other_answers = true;        ///< where it is asked for rows of a size
  Json facts = Json::object();      ///< of rows that are repeated
  std::vector<std::string> order, finished;
  std::map<std::string, std::vector<double>> taken;
  Rows rows;

 private:
  LocalWorker other_{[](const Json&) { return Json(); }};
  Arguments arguments_;
  Devices devices_;
};

const std::vector<std::string> all_discs{"--family=Epoch", "--threads=1,2"};

TEST(RefineRun, FindsWhereMoreThreadsPay) {
  Formula formula(all_discs);
  const Json json = formula.refined(Refine::threads);
  EXPECT_EQ(json["kind"], "threads");
  EXPECT_EQ(json["first"]["cpu_threads"], "1");
  EXPECT_EQ(json["second"]["cpu_threads"], "2");
  EXPECT_EQ(json["common"]["batch"], "100");
  EXPECT_TRUE(json["complete"]);
  ASSERT_EQ(json["intervals"].size(), 1U) << json["intervals"];
  const Json& interval = json["intervals"][0];
  EXPECT_EQ(interval["below"], "first");
  EXPECT_LT(interval["low"], 5000);
  EXPECT_GT(interval["high"], 5000);
  EXPECT_LT(interval["high"].get<double>(), 1.2 * interval["low"].get<double>());
  EXPECT_EQ(json["ladder"].size(), 11U);
  EXPECT_EQ(formula.finished.size(), 2 * json["sizes"].size());
}

TEST(RefineRun, RefinesTheLadderOfWhichMostSizesAreKnown) {
  const std::vector<std::string> wide = wide_family().names;
  Formula more_discs(all_discs, false, wide);
  EXPECT_EQ(more_discs.contest(Refine::threads)->ladder.size(), 11U);

  Formula formula({"--family=Epoch", "--threads=1,2", "--model=disc-2,disc-9"}, false, wide);
  const Json json = formula.refined(Refine::threads);
  ASSERT_EQ(json["ladder"].size(), wide.size()) << json;
  EXPECT_EQ(json["ladder"][1]["model"], "wide-64");
  EXPECT_EQ(json["ladder"][1]["params"], 322);
  EXPECT_TRUE(json["complete"]);
  ASSERT_EQ(json["intervals"].size(), 1U) << json["intervals"];
  EXPECT_EQ(json["intervals"][0]["low"], 4482);
  EXPECT_EQ(json["intervals"][0]["high"], 6402) << "next to it is a size of the sweep";
  for (const std::string& name : formula.order) {
    EXPECT_NE(name.find("Epoch/model:wide-"), std::string::npos) << name;
  }
}

TEST(RefineRun, ALadderWithoutSizesBetweenHasItsOwnAlone) {
  Family coarse = wide_family();
  coarse.sizes = nullptr;
  const std::vector<LadderSize> sizes = sizes_of("wide", {disc_family(), coarse});
  ASSERT_EQ(sizes.size(), coarse.names.size());
  EXPECT_EQ(sizes[1].name, "wide-64");
  EXPECT_EQ(sizes[1].parameters, 322);
  EXPECT_TRUE(sizes_of("", both_ladders()).empty());
  EXPECT_TRUE(sizes_of("deep", both_ladders()).empty());
}

TEST(RefineRun, MeasuresRowsOfEachSizeInTurn) {
  Formula formula(all_discs);
  const Json json = formula.refined(Refine::threads);
  const std::string first = formula.order.at(0);
  EXPECT_NE(first.find("/model:disc-6x"), std::string::npos) << first;
  for (std::size_t i = 0; i < 8; i += 2) {  // either side may begin
    const std::string pair{formula.order[i].back(), formula.order[i + 1].back()};
    EXPECT_TRUE(pair == "12" || pair == "21") << pair;
    EXPECT_EQ(formula.rows[formula.order[i]].spec.model, formula.rows[first].spec.model);
  }
  const Row& row = formula.rows[first];
  EXPECT_TRUE(row.reported_by_caller);
  EXPECT_GT(row.min_time_seconds, 0);
  std::int64_t pairs = 0;
  for (const Json& size : json["sizes"]) {
    pairs += size["pairs"].get<std::int64_t>();
  }
  EXPECT_EQ(std::ssize(formula.order), 2 * pairs);
}

TEST(RefineRun, MeasuresNothingWithoutTimeOrChange) {
  Formula formula(all_discs);
  const Json json = formula.refined(Refine::threads, {.seconds = 0});
  EXPECT_TRUE(formula.order.empty());
  EXPECT_TRUE(json.is_null()) << "what had no time is not recorded";

  Formula small({"--family=Epoch", "--threads=1,2", "--model=disc-2,disc-4,disc-5"});
  EXPECT_TRUE(small.refined(Refine::threads)["complete"]);
  EXPECT_TRUE(small.order.empty());
}

TEST(RefineRun, TakesThreadsThatThereAreCoresFor) {
  Formula formula({"--family=Epoch", "--threads=8,1,2,4"});
  EXPECT_EQ(formula.contest(Refine::threads, 4)->second.threads, 4);
  EXPECT_FALSE(formula.contest(Refine::threads, 1));
  EXPECT_FALSE(formula.contest(Refine::device));
  EXPECT_EQ(formula.contest(Refine::automatic)->kind, Refine::threads);
}

TEST(RefineRun, ComparesProgramsOnTheMostThreads) {
  Formula formula({"--family=Epoch", "--threads=1,2"});
  EXPECT_FALSE(formula.contest(Refine::program));
  for (const std::string& name : std::vector<std::string>(formula.rows.names())) {
    formula.add_other(name);
  }
  const std::optional<Contest> contest = formula.contest(Refine::program);
  EXPECT_EQ(contest->second.program, "other");
  EXPECT_EQ(contest->second.threads, 2);
  EXPECT_EQ(overlaid(contest->first, {.program = "other"}), contest->second);
  EXPECT_EQ(formula.contest(Refine::threads)->kind, Refine::threads) << "of bench alone";
  formula.facts["chosen"] = {{"execution", "fused"}, {"cpu_threads", "2"}};
  const Json json = formula.refined(Refine::program);
  EXPECT_GT(json["sizes"].size(), 0U);
  for (const Json& size : json["sizes"]) {
    EXPECT_TRUE(size["winner"].is_null());
    EXPECT_GT(size["ties"], 3) << "what both chose does not make two programs the same";
  }
}

TEST(RefineRun, AsksOfTwoProgramsWhoIsFasterAtEverySize) {
  Formula formula({"--family=Epoch", "--threads=1"});
  formula.other_takes = 1.05;
  for (const std::string& name : std::vector<std::string>(formula.rows.names())) {
    formula.add_other(name);
  }
  const Json json = formula.refined(Refine::program);
  EXPECT_EQ(json["sizes"].size(), json["ladder"].size());
  for (const Json& size : json["sizes"]) {
    EXPECT_EQ(size["winner"], "first");
  }
}

TEST(RefineRun, EndsWhereTheOtherProgramHasNoRow) {
  for (const bool answers : {true, false}) {
    Formula formula({"--family=Epoch", "--threads=1"});
    formula.other_takes = 2;
    formula.other_overtakes_at = 5000;
    for (const std::string& name : std::vector<std::string>(formula.rows.names())) {
      formula.add_other(name);
    }
    formula.other_answers = answers;
    const Json json = formula.refined(Refine::program);
    // Between those of the sweep it is asked for what it did not have before.
    EXPECT_EQ(json.is_null(), !answers) << json;
    EXPECT_EQ(formula.order.empty(), !answers);
  }
}

TEST(RefineRun, ComparesThreadsOfOneExecution) {
  Formula formula({"--family=Epoch", "--threads=1,2", "--execution=eager,auto"});
  const auto of_both = [&] {
    const std::optional<Contest> contest = formula.contest(Refine::threads);
    EXPECT_EQ(contest->first.execution, contest->second.execution);
    return contest->first.execution;
  };
  EXPECT_EQ(of_both(), Execution::automatic);
  for (const std::string& name : formula.rows.names()) {
    const RowSpec& spec = formula.rows[name].spec;
    if (spec.execution == Execution::automatic && spec.model == "disc-5") {
      formula.taken[name].clear();
    }
  }
  EXPECT_EQ(of_both(), Execution::eager) << "of which more sizes are known";
}

TEST(RefineRun, SidesThatRunOneProgramAreNotTriedAgainAndAgain) {
  const Json chosen = {{"chosen", {{"execution", "fused"}, {"cpu_threads", "1"}}}};
  // A count that no operation is worth: of auto, and where it is given.
  for (const Json& facts : {chosen, Json{{"threads_used", 1}}}) {
    Formula formula(all_discs);
    const std::size_t few = 3;  // sizes
    for (std::size_t i = 0; i < 2 * few; ++i) {
      formula.rows[formula.rows.names()[i]].record.facts = facts;
    }
    const std::vector<Rung> ladder = formula.contest(Refine::threads)->ladder;
    for (std::size_t i = 0; i < ladder.size(); ++i) {
      EXPECT_EQ(ladder[i].winner == Winner::neither, i < few) << i;
      EXPECT_EQ(ladder[i].is_same, i < few) << i;
    }
    formula.facts = facts;
    const Json json = formula.refined(Refine::threads);
    ASSERT_FALSE(json["sizes"].empty());
    for (const Json& size : json["sizes"]) {
      EXPECT_EQ(size["pairs"].get<int>() + size["ties"].get<int>(), 3);
      EXPECT_EQ(size["same"], true);
      EXPECT_TRUE(size["winner"].is_null());
    }
  }
}

TEST(RefineRun, LeavesOutRowsWithoutTimes) {
  Formula formula(all_discs);
  formula.rows[formula.rows.names()[0]].record.outcome = Outcome::failed;
  formula.taken[formula.rows.names()[3]].clear();
  EXPECT_EQ(formula.contest(Refine::threads)->ladder.size(), 9U);
}

TEST(RefineRun, ComparesTheCpuWithWhatAGpuChooses) {
  Formula formula(all_discs, true);
  const std::optional<Contest> contest = formula.contest(Refine::automatic);
  ASSERT_TRUE(contest);
  EXPECT_EQ(contest->kind, Refine::device);
  EXPECT_EQ(contest->first.threads, 2);
  EXPECT_EQ(contest->second.execution, Execution::automatic);
  EXPECT_EQ(contest->second.placement, Placement::resident);
  const Json json = formula.refined(Refine::device);
  ASSERT_EQ(json["intervals"].size(), 1U);
  EXPECT_LT(json["intervals"][0]["low"], 50000);
  EXPECT_GT(json["intervals"][0]["high"], 50000);
}

TEST(RefineRun, ComparesEagerExecutionWithGraphs) {
  Formula formula(all_discs, true);
  const std::optional<Contest> contest = formula.contest(Refine::execution);
  ASSERT_TRUE(contest);
  EXPECT_EQ(contest->first.execution, Execution::eager);
  EXPECT_EQ(contest->second.execution, Execution::graph);
  EXPECT_EQ(contest->first.placement, contest->second.placement);
}

TEST(RefineRun, AnEarlierRunsSizesAreRungs) {
  EarlierRun run;
  const std::string name =
      "Epoch/model:disc-6x1.5/batch:100/precision:f32/device:cpu/execution:auto/cpu_threads:";
  for (const char* threads : {"1", "2"}) {
    run.rows.push_back(
        {.name = name + threads,
         .facts = R"({"name": "x", "configuration": {"model": "disc-6x1.5"}})",
         .entries = {R"({"run_type": "iteration", "real_time": 2, "cpu_time": 2})",
                     R"({"run_type": "aggregate", "real_time": 9, "cpu_time": 9})",
                     R"({"run_type": "iteration", "real_time": 3, "cpu_time": 2})"}});
  }
  run.context["crossover"]["refinements"] = Json::array({{{"complete", false}}});
  const EarlierSizes sizes = earlier_sizes(run, is_on_disc);
  EXPECT_EQ(sizes.models, std::vector<std::string>{"disc-6x1.5"});
  EXPECT_EQ(sizes.seconds.at(name + "2"), (std::vector<double>{2e-3, 3e-3}));
  EXPECT_FALSE(sizes.is_refined());
  EXPECT_EQ(sizes.refinements.size(), 1U);

  Formula formula(all_discs);
  formula.taken[name + "1"] = {1e-3};
  formula.taken[name + "2"] = {2e-3};
  const Json json = formula.refined(Refine::threads, {}, sizes.models);
  EXPECT_EQ(json["ladder"].size(), 12U);
  for (const Json& size : json["sizes"]) {
    EXPECT_NE(size["model"], "disc-6x1.5");
  }
}

TEST(RefineRun, WhatIsNotAsWeWriteItIsRefused) {
  const std::string facts = R"({"configuration": {"model": "disc-2"}})";
  const std::string entry = R"({"run_type": "iteration", "real_time": 2, "cpu_time": 2})";
  const auto refuses = [](const std::string& own_facts, const std::string& own_entry,
                          const std::string& refinements) {
    EarlierRun run;
    run.rows.push_back({.name = "Epoch/model:disc-2", .facts = own_facts, .entries = {own_entry}});
    run.context["crossover"]["refinements"] = Json::parse(refinements);
    try {
      earlier_sizes(run, is_on_disc);
      return false;
    } catch (const UsageError&) {
      return true;
    }
  };
  EXPECT_FALSE(refuses(facts, entry, "[]"));
  EXPECT_TRUE(refuses("{}", entry, "[]"));
  EXPECT_TRUE(refuses(R"({"configuration": 1})", entry, "[]"));
  EXPECT_TRUE(refuses(R"({"configuration": {"model": 1}})", entry, "[]"));
  EXPECT_TRUE(refuses(facts, "{}", "[]"));
  EXPECT_TRUE(
      refuses(facts, R"({"run_type": "iteration", "real_time": "2", "cpu_time": 2})", "[]"));
  EXPECT_TRUE(refuses(facts, entry, "1"));
  EXPECT_TRUE(refuses(facts, entry, "[1]"));
  EXPECT_TRUE(refuses(facts, entry, R"([{"complete": "yes"}])"));
}

}  // namespace
}  // namespace crossover::test
