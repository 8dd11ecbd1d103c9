// SPDX-License-Identifier: Apache-2.0
// Execution::automatic on the emulated GPU: whatever wins there by chance, it is one of the GPU's
// ways, and the Program is what that way would be.
#include <gmock/gmock.h>

#include "backend/planned.h"
#include "crossover/backend.h"
#include "crossover/catalogue.h"
#include "crossover/networks.h"
#include "crossover/start.h"
#include "crossover/verify.h"
#include "cuda_host.h"
#include "emulated.h"
#include "support.h"

namespace crossover::test {
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
}  // namespace crossover::test
