// SPDX-License-Identifier: Apache-2.0
#include "../bench/command_line/axes.h"

#include <benchmark/benchmark.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "../bench/command_line/arguments.h"
#include "../bench/rows/families.h"

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
  EXPECT_EQ(value_or_unsaid({{"accumulate", "2"}}, "accumulate"), "2");
  EXPECT_EQ(value_or_unsaid({}, "accumulate"), "1");
  EXPECT_EQ(value_or_unsaid({}, "model"), "");
}

TEST(Axes, OfProgramsSetTheOptionThatTheyName) {
  const CompileOptions options = options_of({{"execution", "graph-epoch"},
                                             {"data", "pinned"},
                                             {"products", "autotuned"},
                                             {"precision", "tf32"},
                                             {"loss", "step"},
                                             {"cpu_threads", "7"},
                                             {"model", "disc-2"}});
  EXPECT_EQ(options.execution, Execution::graph_epoch);
  EXPECT_EQ(options.placement, Placement::pinned);
  EXPECT_EQ(options.products, ProductChoice::autotuned);
  EXPECT_EQ(options.precision, Precision::tf32);
  EXPECT_TRUE(options.loss_every_step);
  EXPECT_EQ(options.threads, 7);
}

TEST(Axes, ThePlainestValuesAreThoseOfPlainOptions) {
  for (const Axis& axis : axes()) {
    if (axis.apply && !axis.values.empty()) {
      const CompileOptions plain = options_of({{axis.key, axis.values.front()}});
      EXPECT_EQ(plain.precision, CompileOptions().precision);
      EXPECT_EQ(plain.execution, CompileOptions().execution);
      EXPECT_EQ(plain.placement, CompileOptions().placement);
      EXPECT_EQ(plain.products, CompileOptions().products);
      EXPECT_EQ(plain.loss_every_step, CompileOptions().loss_every_step);
    }
  }
}

TEST(Axes, OrderTheKeysOfAName) {
  EXPECT_EQ(row_name(in_order({{"products", "autotuned"},
                               {"data", "resident"},
                               {"execution", "eager"},
                               {"device", "cuda"},
                               {"loss", "step"},
                               {"accumulate", "2"},
                               {"precision", "f32"},
                               {"batch", "100"},
                               {"model", "disc-2"},
                               {"family", "Epoch"}})),
            "Epoch/model:disc-2/batch:100/precision:f32/accumulate:2/loss:step/device:cuda/"
            "execution:eager/data:resident/products:autotuned");
}

TEST(Axes, LeaveOutOfNamesWhatGoesWithoutSaying) {
  EXPECT_EQ(row_name(in_order({{"family", "Epoch"},
                               {"accumulate", "1"},
                               {"loss", "epoch"},
                               {"device", "cuda"},
                               {"execution", "eager"},
                               {"products", "heuristic"}})),
            "Epoch/device:cuda/execution:eager");
}

Row row_of(const Configuration& configuration) { return {.configuration = configuration}; }

TEST(Axes, RowsOfAnotherKeyOrValueAreRefused) {
  Rows rows;
  rows.add(row_of({{"family", "Epoch"}, {"device", "cpu"}}));
  EXPECT_THROW(rows.add(row_of({{"family", "Epoch"}, {"nodes", "2"}})), std::logic_error);
  EXPECT_THROW(rows.add(row_of({{"family", "Epoch"}, {"device", "tpu"}})), std::logic_error);
  EXPECT_THROW(rows.add(row_of({{"family", "Epoch"}, {"model", "a"}, {"model", "b"}})),
               std::logic_error);
  EXPECT_EQ(rows.names(), std::vector<std::string>{"Epoch/device:cpu"});
}

TEST(Axes, HaveEachKeyOfEveryPlannedRow) {
  const Arguments arguments =
      parse({"--sweep=full", "--cuda=off", "--loss=step", "--batch=32,7", "--accumulate=3",
             "--precision=f32,bf16", "--ranks=1,2", "--bucket=4096", "--shuffle=none,epoch",
             "--loader=0,2", "--zero=overwrite,keep"});
  Devices devices = find_devices(arguments.cuda);
  Rows rows = register_all(arguments, devices);  // throws where a key or a value is unknown
  std::set<std::string> families_met;
  for (const std::string& name : rows.names()) {
    families_met.insert(value_of(rows[name].configuration, "family"));
    EXPECT_EQ(rows[name].configuration, in_order(rows[name].configuration)) << name;
  }
  EXPECT_EQ(families_met.size() + 1, families().size());  // commands come from ./run two alone
}

TEST(Axes, FlagsOfTrainingReplaceTheModesOfTheSweep) {
  const Configuration graph_pinned{{"execution", "graph"},
                                   {"data", "pinned"},
                                   {"products", "heuristic"},
                                   {"cudnn", "heuristic"},
                                   {"zero", "overwrite"}};
  const Arguments chosen = parse({"--execution=graph", "--placement=pinned"});
  EXPECT_EQ(chosen.gpu_modes.of_training, std::vector<Configuration>{graph_pinned});
  EXPECT_EQ(chosen.gpu_modes.of_operations,
            (std::vector<Configuration>{
                {{"execution", "graph"}, {"products", "heuristic"}, {"cudnn", "heuristic"}}}));

  const Arguments quick = parse({"--sweep=quick", "--products=heuristic,autotuned"});
  EXPECT_EQ(quick.gpu_modes.of_training.size(), 4U * 2);
  EXPECT_EQ(parse({"--sweep=full"}).gpu_modes.of_training.size(), 2U * 4 + 4)
      << "one graph of an epoch, one kernel, autotuned products, and auto";
  EXPECT_EQ(parse({"--sweep=full", "--loss=step"}).gpu_modes.of_training.size(), 2U * 4 + 2);
  const auto products = [](const std::string& flag) {
    std::set<std::string> found;
    for (const Configuration& mode : parse({"--sweep=full", flag}).gpu_modes.of_training) {
      found.insert(value_of(mode, "products"));
    }
    return found;
  };
  EXPECT_EQ(products("--batch=100"), (std::set<std::string>{"autotuned", "heuristic"}));
  EXPECT_EQ(products("--products=heuristic"), std::set<std::string>{"heuristic"});
  EXPECT_EQ(products("--products=autotuned"), std::set<std::string>{"autotuned"});
  EXPECT_EQ(parse({"--execution=graph-epoch"}).gpu_modes.of_training.size(), 1U)
      << "with resident data";
}

std::vector<std::string> executions(const std::vector<Configuration>& modes) {
  std::vector<std::string> found;
  for (const Configuration& mode : modes) {
    found.push_back(value_of(mode, "execution"));
  }
  return found;
}

TEST(Axes, EachDeviceMeasuresTheExecutionsThatItHas) {
  using Values = std::vector<std::string>;
  const Axis& axis = find_axis("execution");
  EXPECT_EQ(axis.values_on(AxisDevices::cpu, true),
            (Values{"eager", "winograd", "fused", "overlapped", "auto"}));
  EXPECT_EQ(axis.values_on(AxisDevices::gpu, true),
            (Values{"eager", "overlapped", "auto", "graph", "graph-epoch", "persistent"}));
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
  EXPECT_THROW(parse({"--execution=persistent", "--placement=pinned"}), UsageError);
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
  EXPECT_EQ(choices.of("cpu_threads"), std::vector<std::string>{"3"});
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
