// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "crossover/backend.h"
#include "crossover/catalogue.h"
#include "crossover/networks.h"
#include "crossover/start.h"
#include "crossover/verify.h"
#include "cuda_host.h"
#include "emulated.h"
#include "plan/planned.h"
#include "support.h"

namespace crossover::test {

// ---- Execution::automatic on the emulated GPU: whatever wins there by chance, it is one of the
// GPU's ways, and the Program is what that way would be.

namespace {

using testing::AnyOf;
using testing::ElementsAre;

constexpr CompileOptions automatic{.execution = Execution::automatic};

Workload epoch_of(const Model& model, std::int64_t rows) {
  return training_epoch(model, {.rows = rows, .batch = 5, .optimizer = AdamWOptions{}});
}

Workload epoch_of(const std::string& network, std::int64_t rows) {
  return epoch_of(find_model(network).model, rows);
}

CompileOptions as(const Choice& choice) {
  return {.execution = choice.execution,
          .products = choice.products,
          .convolutions = choice.convolutions};
}

TEST(EmulatedAutomatic, IsTheProgramOfItsChoice) {
  const auto backend = gpu();
  const Workload network = epoch_of("disc-4", 23);
  const Workload workload = backend->optimize(network, automatic);
  const auto plan = backend->plan(workload, automatic);
  const auto program = plan->instantiate();
  const std::optional<Choice> chosen = program->facts().chosen;
  ASSERT_TRUE(chosen);
  EXPECT_THAT(chosen->execution, AnyOf(Execution::eager, Execution::graph, Execution::graph_epoch,
                                       Execution::persistent));
  EXPECT_EQ(plan->bytes(), program->facts().bytes);
  EXPECT_EQ(plan->launches(), program->facts().launches);

  const Workload own = backend->optimize(network, as(*chosen));
  const auto same = backend->compile(own, as(*chosen));
  EXPECT_FALSE(same->facts().chosen);
  EXPECT_EQ(program->facts().launches, same->facts().launches);
  EXPECT_EQ(program->facts().bytes, same->facts().bytes);
  for (const Role role : {Role::parameter, Role::state, Role::loss}) {
    for (const Id id : tensors_of(workload, role)) {
      EXPECT_THAT(download(*program, workload, id), testing::Each(0.0)) << workload[id].name;
    }
  }
  const Dataset data = uniform_rows({2}, 23, 2);
  set_data(*program, own, data);
  restart(*program, own);
  program->enqueue(0, std::ssize(own.order));
  program->wait();
  verify_state(*program, own, reference_trajectory(own, data, std::ssize(own.order)));
}

/// Which of them run is up to the clock: a way that is far behind is not tried with other
/// algorithms.
TEST(EmulatedAutomatic, MayTryWhatALibraryOffersAndWhatFitsTheOrder) {
  const cuda::PlannedGpu planned;
  const auto executions = [&](const Workload& workload, const CompileOptions& options,
                              ProductChoice products) {
    std::vector<Execution> found;
    for (const Choice& choice : planned.choices(workload, options)) {
      if (choice.products == products) {
        found.push_back(choice.execution);
      }
    }
    return found;
  };
  const Workload long_order = planned.optimize(epoch_of("disc-4", 23), automatic);
  EXPECT_THAT(executions(long_order, automatic, ProductChoice::heuristic),
              ElementsAre(Execution::eager, Execution::graph, Execution::graph_epoch,
                          Execution::persistent));
  EXPECT_THAT(executions(long_order, automatic, ProductChoice::autotuned),
              ElementsAre(Execution::graph_epoch, Execution::graph, Execution::eager));

  CompileOptions copied = automatic;
  copied.placement = Placement::pinned;
  for (const auto& [workload, options] :
       {std::pair(planned.optimize(epoch_of("disc-4", 5), automatic), automatic),
        std::pair(long_order, copied)}) {
    EXPECT_THAT(executions(workload, options, ProductChoice::heuristic),
                ElementsAre(Execution::eager, Execution::graph))
        << "an order of one step, and one that copies, is not run as a whole";
    EXPECT_THAT(gpu()->compile(workload, options)->facts().chosen->execution,
                AnyOf(Execution::eager, Execution::graph));
  }
}

TEST(EmulatedAutomatic, TriesConvolutionsWhereThereAreSome) {
  const auto backend = gpu();
  const Model small = resnet(ResNetR{.blocks = 1, .image = 9, .channels = {2, 3, 4}, .classes = 3});
  const Workload workload = backend->optimize(epoch_of(small, 5), automatic);
  const auto chosen = backend->compile(workload, automatic)->facts().chosen;
  ASSERT_TRUE(chosen);
  const bool are_timed = chosen->products == ProductChoice::autotuned;
  EXPECT_EQ(chosen->convolutions == ConvolutionChoice::benchmark, are_timed);
  const Workload dense = backend->optimize(epoch_of("disc-2", 5), automatic);
  EXPECT_EQ(backend->compile(dense, automatic)->facts().chosen->convolutions,
            ConvolutionChoice::heuristic);
}

}  // namespace

// ---- Products whose algorithm is chosen by timing: which one that is, and what choosing leaves
// behind.

namespace {

constexpr std::size_t algorithm_count =
    std::tuple_size_v<decltype(cuda_host::Device::product_microseconds)> + 1;

/// How often an epoch multiplies with each algorithm.
std::array<std::int64_t, algorithm_count> used(const Training& training,
                                               const CompileOptions& options) {
  const auto program = started(*gpu(), training, options);
  std::array<std::int64_t, algorithm_count> products{};
  for (std::size_t i = 0; i < algorithm_count; ++i) {
    products[i] = -cuda_host::products_by(i);
  }
  program->enqueue(0, std::ssize(training.workload.order));
  program->wait();
  for (std::size_t i = 0; i < algorithm_count; ++i) {
    products[i] += cuda_host::products_by(i);
  }
  return products;
}

using testing::ElementsAre;
using testing::Gt;

TEST(EmulatedAutotune, TakesTheFastestThatTheWorkspaceHolds) {
  const Training training = accumulating();
  EXPECT_THAT(used(training, {}), ElementsAre(Gt(0), 0, 0, 0, 0));
  const CompileOptions tuned{.products = ProductChoice::autotuned};
  EXPECT_THAT(used(training, tuned), ElementsAre(0, Gt(0), 0, 0, 0));
  cuda_host::device().product_microseconds = {3, 2, 1, 1};
  EXPECT_THAT(used(training, tuned), ElementsAre(0, 0, Gt(0), 0, 0));
}

/// Of a sum that is long enough.
TEST(EmulatedAutotune, TriesSplitSums) {
  const auto of = [](std::int64_t width, Precision precision = Precision::f32) {
    const Model model = mlp("m", {width, 3}, Activation::relu);
    return Training{fuse(training_epoch(model, {.rows = 4, .batch = 4, .precision = precision})),
                    uniform_rows({width}, 4, 3)};
  };
  CompileOptions tuned{.products = ProductChoice::autotuned};
  EXPECT_EQ(used(of(512), tuned)[4], 0);
  cuda_host::device().split_microseconds = 1;
  EXPECT_EQ(used(of(512), {})[4], 0) << "only timed";
  EXPECT_EQ(used(of(255), tuned)[4], 0);
  EXPECT_EQ(used(of(512), tuned)[4], 1) << "the forward product alone has a long sum";
  for (const Precision precision : {Precision::f32, Precision::bf16}) {
    const Training training = of(512, precision);
    tuned.precision = precision;
    const auto program = started(*gpu(), training, tuned);
    program->enqueue(0, 1);
    EXPECT_NO_THROW(verify_state(*program, training.workload,
                                 reference_trajectory(training.workload, training.data, 1),
                                 precision));
  }
}

TEST(EmulatedAutotune, OfEqualsTakesTheOneThatRanksHigher) {
  cuda_host::device().product_microseconds = {2, 2, 2, 2};
  EXPECT_THAT(used(accumulating(), {.products = ProductChoice::autotuned}),
              ElementsAre(Gt(0), 0, 0, 0, 0));
}

TEST(EmulatedAutotune, TimesEachFormOnce) {
  const Training training = accumulating();
  const auto calls = [&](std::int64_t rows) {
    const Workload longer = fuse(training_epoch(residual_model(), {.rows = rows, .batch = 5}));
    cuda_host::reset();
    static_cast<void>(gpu()->compile(longer, {.products = ProductChoice::autotuned}));
    return cuda_host::calls_of("cublasLtMatmul");
  };
  EXPECT_GT(calls(5), 0);
  EXPECT_EQ(calls(5), calls(50)) << "more steps of the same kind";
}

TEST(EmulatedAutotune, LeavesNothingInTheTensors) {
  const Training training = accumulating();
  const auto backend = gpu();
  for (const GpuMode& mode : gpu_modes()) {
    CompileOptions options = mode.options;
    options.products = ProductChoice::autotuned;
    const auto program = backend->compile(training.workload, options);
    for (const Role role : {Role::parameter, Role::gradient, Role::state, Role::loss}) {
      for (const Id id : tensors_of(training.workload, role)) {
        const std::vector<double> values = download(*program, training.workload, id);
        EXPECT_THAT(values, testing::Each(0.0)) << mode.name << training.workload[id].name;
      }
    }
  }
}

TEST(EmulatedAutotune, IsVerifiedInEveryModeAndPrecision) {
  const Dataset data = uniform_rows({5}, 23, 3);
  std::size_t first = 0;  // each mode in one precision; with test_all() in all
  for (const Precision precision :
       {Precision::f32, Precision::tf32, Precision::bf16, Precision::f16}) {
    const Workload workload = fuse(training_epoch(residual_model(), {.rows = 23,
                                                                     .batch = 5,
                                                                     .optimizer = AdamWOptions{},
                                                                     .accumulate = 2,
                                                                     .precision = precision}));
    const Trajectory expected = reference_trajectory(workload, data, 5);
    std::vector<GpuMode> modes = gpu_modes();
    for (std::size_t i = test_all() ? 0 : first++; i < modes.size(); i += test_all() ? 1 : 4) {
      GpuMode& mode = modes[i];
      mode.options.precision = precision;
      mode.options.products = ProductChoice::autotuned;
      const auto program = started(*gpu(), {workload, data}, mode.options);
      const std::int64_t events = cuda_host::calls_of("cudaEventElapsedTime");
      program->enqueue(0, 5);
      EXPECT_NO_THROW(verify_state(*program, workload, expected, precision)) << mode.name;
      EXPECT_EQ(cuda_host::calls_of("cudaEventElapsedTime"), events) << "timed in the loop";
    }
  }
}

}  // namespace

}  // namespace crossover::test
