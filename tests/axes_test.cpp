// SPDX-License-Identifier: Apache-2.0
#include "../bench/axes/axes.h"

#include <benchmark/benchmark.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "../bench/command_line/arguments.h"
#include "../bench/families/families.h"
#include "crossover/training.h"

namespace crossover::bench {
namespace {

TEST(Axes, AreDescribedOnceEach) {
  std::set<std::string> keys;
  std::set<std::string> flags;
  for (const Axis& axis : axes()) {
    EXPECT_TRUE(keys.insert(axis.key).second) << axis.key;
    EXPECT_FALSE(axis.description.empty()) << axis.key;
    if (!axis.flag.name.empty()) {
      EXPECT_TRUE(flags.insert(axis.flag.name).second) << axis.flag.name;
      EXPECT_FALSE(axis.flag.help.empty()) << axis.key;
    }
  }
}

TEST(Flags, AreAllThatGoogleBenchmarkHas) {
  testing::internal::CaptureStdout();
  benchmark::PrintDefaultHelp();
  const std::string text = testing::internal::GetCapturedStdout();
  Arguments arguments;
  const std::vector<Flag> known = benchmark_flags(arguments);
  int count = 0;
  for (std::size_t at = text.find("--"); at != std::string::npos; at = text.find("--", at + 2)) {
    const std::string name = text.substr(at, text.find_first_of("=]", at) - at);
    EXPECT_EQ(std::ranges::count(known, name, &Flag::name), 1) << name;
    ++count;
  }
  EXPECT_GT(count, 10) << text;
}

TEST(Flags, OfGoogleBenchmarkAreTakenWhereTheyChangeNothing) {
  for (const char* plain :
       {"--benchmark_format=console", "--benchmark_color=auto", "--benchmark_dry_run=false",
        "--benchmark_out_format=json", "--benchmark_counters_tabular=0"}) {
    EXPECT_TRUE(parse({plain}).passed_on.empty()) << plain;
  }
  const Arguments arguments = parse({"--v=1", "--benchmark_perf_counters=CYCLES", "-h"});
  EXPECT_EQ(arguments.passed_on,
            (std::vector<std::string>{"--v=1", "--benchmark_perf_counters=CYCLES"}));
  EXPECT_EQ(arguments.action, Action::help);
}

TEST(Axes, SayTheValueThatNamesLeaveOut) {
  EXPECT_EQ(text_of({.accumulate = 2}, &RowSpec::accumulate), "2");
  EXPECT_EQ(text_of({}, &RowSpec::accumulate), "1");
  EXPECT_EQ(text_of({}, &RowSpec::model), "");
}

TEST(Axes, EachHasAMemberThatItsValuesGoIntoAndComeFrom) {
  for (const Axis& axis : axes()) {
    const std::vector<std::string> numbers{"1", "2"};
    for (const std::string& value : axis.values.empty() ? numbers : axis.values) {
      RowSpec spec;
      axis.write(spec, value);
      EXPECT_EQ(axis.read(spec), value) << axis.key;
      EXPECT_EQ(axis.is_said(spec), value != axis.unsaid) << axis.key;
      EXPECT_EQ(configuration_of(spec).size(), axis.is_said(spec) ? 1U : 0U) << axis.key;
      EXPECT_EQ(overlaid({}, spec), spec) << axis.key;
    }
  }
}

TEST(Axes, OfProgramsSetTheOptionThatTheyName) {
  const CompileOptions options = options_of({.model = "disc-2",
                                             .precision = Precision::tf32,
                                             .loss_every_step = true,
                                             .execution = Execution::graph_epoch,
                                             .placement = Placement::pinned,
                                             .products = ProductChoice::autotuned,
                                             .threads = 7});
  EXPECT_EQ(options.execution, Execution::graph_epoch);
  EXPECT_EQ(options.placement, Placement::pinned);
  EXPECT_EQ(options.products, ProductChoice::autotuned);
  EXPECT_EQ(options.precision, Precision::tf32);
  EXPECT_TRUE(options.loss_every_step);
  EXPECT_EQ(options.threads, 7);
}

TEST(Axes, ThePlainestValuesAreThoseOfPlainOptions) {
  RowSpec plainest;
  for (const Axis& axis : axes()) {
    if (!axis.values.empty()) {
      axis.write(plainest, axis.values.front());
    }
  }
  const CompileOptions plain = options_of(plainest);
  EXPECT_EQ(plain.precision, CompileOptions().precision);
  EXPECT_EQ(plain.execution, CompileOptions().execution);
  EXPECT_EQ(plain.placement, CompileOptions().placement);
  EXPECT_EQ(plain.products, CompileOptions().products);
  EXPECT_EQ(plain.loss_every_step, CompileOptions().loss_every_step);
}

TEST(Axes, OrderTheKeysOfAName) {
  const nlohmann::ordered_json configuration = {
      {"products", "autotuned"}, {"data", "resident"}, {"execution", "eager"}, {"device", "cuda"},
      {"loss", "step"},          {"accumulate", "2"},  {"precision", "f32"},   {"batch", "100"},
      {"model", "disc-2"},       {"family", "Epoch"}};
  EXPECT_EQ(row_name(spec_in(configuration)),
            "Epoch/model:disc-2/batch:100/precision:f32/accumulate:2/loss:step/device:cuda/"
            "execution:eager/data:resident/products:autotuned");
}

TEST(Axes, LeaveUnsaidTheBucketsThatATrainingHasByItself) {
  EXPECT_EQ(RowSpec().bucket_bytes, TrainingOptions().bucket_bytes);
}

TEST(Axes, LeaveOutOfNamesWhatGoesWithoutSaying) {
  EXPECT_EQ(row_name(spec_in({{"family", "Epoch"},
                              {"accumulate", "1"},
                              {"loss", "epoch"},
                              {"device", "cuda"},
                              {"execution", "eager"},
                              {"products", "heuristic"}})),
            "Epoch/device:cuda/execution:eager");
}

TEST(Axes, TextsOfAnotherKeyOrValueAreRefused) {
  const auto refusal = [](const char* key, const char* value) -> std::string {
    try {
      spec_in({{"family", "Epoch"}, {key, value}});
    } catch (const std::exception& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal("device", "cpu"), "");
  EXPECT_EQ(refusal("nodes", "2"), "no axis 'nodes'; add it to the table in bench/axes/axes.cpp");
  EXPECT_EQ(refusal("data", "residnet"),
            "the axis 'data' has no value 'residnet'; add it to the table in "
            "bench/axes/axes.cpp");
  EXPECT_EQ(refusal("width", "2x"), "a configuration's 'width' is no number but '2x'");
  EXPECT_EQ(refusal("cpu_threads", "0"), "--threads: '0' is not a whole number from 1 to 4096");
}

TEST(Axes, HaveEachKeyOfEveryPlannedRow) {
  const Arguments every_family = parse({"--sweep=full", "--cuda=off"});
  const Arguments every_axis =
      parse({"--sweep=full", "--model=heart,lenet-5,gpt-32", "--cuda=off", "--loss=step",
             "--batch=32,7", "--accumulate=3", "--precision=f32,bf16", "--ranks=1,2",
             "--bucket=4096", "--shuffle=none,epoch", "--loader=0,2", "--zero=overwrite,keep"});
  std::set<RowFamily> families_met;
  for (const Arguments& arguments : {every_family, every_axis}) {
    Devices devices = find_devices(arguments.uses);
    Rows rows = register_all(arguments, devices);
    for (const std::string& name : rows.names()) {
      const RowSpec& spec = rows[name].spec;
      families_met.insert(spec.family.value());
      EXPECT_EQ(spec_in(configuration_json(spec)), spec) << name;
    }
  }
  // Commands come from ./run two alone, functions from programs that link crossover::two.
  EXPECT_EQ(families_met.size() + 2, families().size());
}

TEST(Axes, FlagsOfTrainingReplaceTheModesOfTheSweep) {
  const RowSpec graph_pinned{.execution = Execution::graph, .placement = Placement::pinned};
  const Arguments chosen = parse({"--execution=graph", "--placement=pinned"});
  EXPECT_EQ(chosen.gpu_modes.of_training, std::vector<RowSpec>{graph_pinned});
  EXPECT_EQ(chosen.gpu_modes.of_operations,
            (std::vector<RowSpec>{{.execution = Execution::graph}}));

  const Arguments quick = parse({"--sweep=quick", "--products=heuristic,autotuned"});
  EXPECT_EQ(quick.gpu_modes.of_training.size(), 4U * 2);
  EXPECT_EQ(parse({"--sweep=full"}).gpu_modes.of_training.size(), 2U * 4 + 4)
      << "one graph of an epoch, one kernel, autotuned products, and auto";
  EXPECT_EQ(parse({"--sweep=full", "--loss=step"}).gpu_modes.of_training.size(), 2U * 4 + 2);
  const auto products = [](const std::string& flag) {
    std::set<ProductChoice> found;
    for (const RowSpec& mode : parse({"--sweep=full", flag}).gpu_modes.of_training) {
      found.insert(mode.products);
    }
    return found;
  };
  using Choices = std::set<ProductChoice>;
  EXPECT_EQ(products("--batch=100"), (Choices{ProductChoice::heuristic, ProductChoice::autotuned}));
  EXPECT_EQ(products("--products=heuristic"), Choices{ProductChoice::heuristic});
  EXPECT_EQ(products("--products=autotuned"), Choices{ProductChoice::autotuned});
  EXPECT_EQ(parse({"--execution=graph-epoch"}).gpu_modes.of_training.size(), 1U)
      << "with resident data";
}

std::vector<std::string> executions(const std::vector<RowSpec>& modes) {
  std::vector<std::string> found;
  for (const RowSpec& mode : modes) {
    found.push_back(text_of(mode, &RowSpec::execution));
  }
  return found;
}

TEST(Axes, EachDeviceMeasuresTheExecutionsThatItHas) {
  using Values = std::vector<std::string>;
  const Axis& axis = axis_of(&RowSpec::execution);
  EXPECT_EQ(axis.values_on(AxisDevices::cpu, true),
            (Values{"eager", "winograd", "fused", "overlapped", "auto"}));
  EXPECT_EQ(
      axis.values_on(AxisDevices::gpu, true),
      (Values{"eager", "overlapped", "auto", "graph", "graph-epoch", "persistent", "tailored"}));
  EXPECT_EQ(axis.values_on(AxisDevices::cpu, false), Values{"eager"});
  EXPECT_EQ(axis.values_on(AxisDevices::gpu, false), (Values{"eager", "graph", "graph-epoch"}));

  const Arguments both = parse({"--execution=fused,graph"});
  EXPECT_EQ(executions(both.cpu_modes.of_training), Values{"fused"});
  EXPECT_EQ(executions(both.gpu_modes.of_training), Values{"graph"});
  EXPECT_EQ(executions(both.cpu_modes.of_operations), Values{"eager"});
  EXPECT_EQ(executions(both.gpu_modes.of_operations), Values{"graph"});

  const Arguments plain = parse({});
  const Arguments of_cpu = parse({"--execution=eager,auto,fused"});
  EXPECT_EQ(executions(of_cpu.cpu_modes.of_training), (Values{"eager", "auto", "fused"}));
  EXPECT_EQ(executions(of_cpu.gpu_modes.of_training), (Values{"eager", "auto"}));
  const Arguments only_cpu = parse({"--execution=fused"});
  EXPECT_EQ(only_cpu.gpu_modes, plain.gpu_modes) << "where it has none of them: the sweep's";
  const Arguments only_gpu = parse({"--execution=graph-epoch"});
  EXPECT_EQ(only_gpu.cpu_modes, plain.cpu_modes);
  EXPECT_THROW(parse({"--execution=graph-epoch", "--placement=pinned"}), UsageError);
  const Arguments copied = parse({"--execution=persistent", "--placement=pinned"});
  EXPECT_EQ(executions(copied.gpu_modes.of_training), Values{"persistent"});
  EXPECT_THROW(parse({"--execution=persistent", "--loss=step"}), UsageError);
}

TEST(Axes, AFlagThatIsReadAfterAnotherProgramsAxesIsItsOwn) {
  Choices choices;
  const std::vector<Flag> flags = axis_flags(choices);
  add_axes({{.key = "mood", .role = AxisRole::how, .description = "of a test"}});
  for (const Flag& flag : flags) {
    if (flag.name == "--threads") {
      flag.take(flag.name, "3");
    }
  }
  EXPECT_EQ(choices.of(&RowSpec::threads), std::vector<int>{3});
}

TEST(Axes, AValueThatIsSaidTwiceCountsOnce) {
  EXPECT_EQ(parse({"--batch=10,20,010"}).batches, (std::vector<std::int64_t>{10, 20}));
  std::string eager = "eager";
  std::string resident = "resident";
  for (int i = 0; i < 100; ++i) {
    eager += ",eager";
    resident += ",resident";
  }
  const Arguments both = parse({"--execution=" + eager, "--placement=" + resident});
  EXPECT_EQ(both.gpu_modes.of_training.size(), 1U);
}

TEST(Sweeps, HaveEnoughPairsForAnIntervalBesideAnotherProgram) {
  EXPECT_EQ(parse({}).sweep.minibatch_repetitions, 5);
  constexpr int fewest = 6;
  for (const Sweep& sweep : sweeps()) {
    const Sweep beside = parse({"--sweep=" + sweep.name, "--peer=x"}).sweep;
    EXPECT_EQ(beside.effort.repetitions, std::max(sweep.effort.repetitions, fewest));
    EXPECT_EQ(beside.minibatch_repetitions, std::max(sweep.minibatch_repetitions, fewest));
  }
}

TEST(Axes, ClassesThatNoLabelCanTellAreRefused) {
  EXPECT_EQ(parse({"--mlp=2,2147483648"}).tasks.front().model.classes, most_classes);
  EXPECT_THROW(parse({"--mlp=2,2147483649"}), UsageError);
}

TEST(Networks, WidthsAreReadAsNamesHaveThem) {
  EXPECT_EQ(parse({"--mlp=784-512-10"}).tasks.front().model.name, "mlp-784-512-10");
  EXPECT_THROW(parse({"--mlp=-784,10"}), UsageError);
}

TEST(Networks, OneOutputIsANumber) {
  EXPECT_EQ(parse({"--mlp=20,64,1"}).tasks.front().model.name, "mlp-20-64-1-mse");
  EXPECT_EQ(parse({"--mlp=20,64,1", "--loss-function=bce"}).tasks.front().model.name,
            "mlp-20-64-1-bce");
  EXPECT_THROW(parse({"--mlp=20,64,1", "--loss-function=cross-entropy"}), UsageError);
}

}  // namespace
}  // namespace crossover::bench
