// SPDX-License-Identifier: Apache-2.0
// Copies of a network whose launches do the same for each: what is launched, that no launch forgets
// a copy, and what remains where the library lacks their products.
#include <gmock/gmock.h>

#include <functional>

#include "crossover/backend_over.h"
#include "crossover/start.h"
#include "crossover/verify.h"
#include "cuda_host.h"
#include "emulated.h"
#include "refusing_library.h"
#include "run/backend.h"
#include "support.h"

namespace crossover::test {
namespace {

using cuda::Epilogue;
using cuda::ProductForm;
using testing::HasSubstr;

constexpr std::int64_t count_of_copies = 3;
const Model of_relu = mlp("m", {4, 9, 6, 3}, Activation::relu);

Workload epoch_of(std::int64_t copies, Precision precision = Precision::f32) {
  return fuse(training_epoch(of_relu, {.rows = 13,
                                       .batch = 5,
                                       .optimizer = AdamWOptions{.learning_rate = 0.01},
                                       .precision = precision,
                                       .copies = copies}));
}

class EmulatedNetworks : public testing::TestWithParam<Execution> {
 protected:
  const Training training_{epoch_of(count_of_copies), uniform_rows({4}, 13, 3)};
  const std::int64_t steps_ = std::ssize(training_.workload.order);
  const Trajectory expected_ = reference_trajectory(training_.workload, training_.data, steps_);
  const CompileOptions options_{.execution = GetParam()};

  void expect_verified(const Backend& own, std::int64_t programs) const {
    const auto backend = make_copies_backend(own, count_of_copies);
    const auto program = started(*backend, training_, options_);
    EXPECT_EQ(program->facts().copies, count_of_copies / programs);
    program->enqueue(0, steps_);
    EXPECT_NO_THROW(verify_state(*program, training_.workload, expected_));
  }
};

TEST_P(EmulatedNetworks, AreLaunchedAsOneIs) {
  const auto own = gpu();
  const auto alone = own->compile(epoch_of(1), options_);
  const auto backend = make_copies_backend(*own, count_of_copies);
  const auto plan = backend->plan(training_.workload, options_);
  const auto program = plan->instantiate();
  for (const std::int64_t launches : {plan->launches(), program->facts().launches,
                                      backend->estimate(training_.workload, options_).launches}) {
    EXPECT_EQ(launches, alone->facts().launches);
  }
  EXPECT_EQ(plan->bytes(), program->facts().bytes);
  const std::int64_t workspace = own->estimate(epoch_of(1), options_).workspace_bytes;
  EXPECT_GE(plan->bytes() - workspace, count_of_copies * (alone->facts().bytes - workspace));
  EXPECT_LT(plan->bytes(), 2 * alone->facts().bytes) << "one workspace";
  const auto calls_of = [](Program& of, std::int64_t runs) {
    of.enqueue(0, runs);  // which also sets the counter of runs
    of.wait();
    const std::int64_t before = cuda_host::calls();
    of.enqueue(0, runs);
    of.wait();
    return cuda_host::calls() - before;
  };
  EXPECT_EQ(calls_of(*program, steps_), calls_of(*alone, steps_ / count_of_copies));
  EXPECT_EQ(program->profile().size(), alone->profile().size());
}

TEST_P(EmulatedNetworks, TrainInAnyPartsOfTheOrder) {
  const auto own = gpu();
  const auto backend = make_copies_backend(*own, count_of_copies);
  const auto program = started(*backend, training_, options_);
  for (const auto& [first, end] : {std::pair{0, 1}, {1, 2}, {2, 7}, {7, 9}}) {
    program->enqueue(first, end - first);
  }
  EXPECT_NO_THROW(verify_state(*program, training_.workload, expected_));
  EXPECT_NO_THROW(verify(*program, training_.workload, expected_)) << "then as a whole";
}

/// As a kernel would that forgets one of its operands, or a product one of its strides.
TEST_P(EmulatedNetworks, AreFoundWrongWhereOneLaunchForgetsThem) {
  const auto own = gpu();
  const auto backend = make_copies_backend(*own, count_of_copies);
  const auto program = started(*backend, training_, options_);
  if (GetParam() != Execution::eager) {
    return;  // a graph is recorded once
  }
  const std::int64_t launches = program->facts().launches;
  for (std::int64_t launch = 1; launch <= launches; ++launch) {
    SCOPED_TRACE(launch);
    restart(*program, training_.workload);
    program->enqueue(0, count_of_copies);  // which also sets the counter of runs
    program->wait();
    cuda_host::device().forgetful_launch = launch;
    program->enqueue(count_of_copies, steps_ - count_of_copies);
    program->wait();
    const bool was_its_turn = cuda_host::device().forgetful_launch == 0;
    EXPECT_EQ(was_its_turn, launch <= launches * 2 / 3);
    if (was_its_turn) {
      EXPECT_THAT(
          message_of<Mismatch>([&] { verify_state(*program, training_.workload, expected_); }),
          testing::AnyOf(HasSubstr("of copy"), HasSubstr("the loss of step")));
    }
    cuda_host::device().forgetful_launch = 0;
  }
}

TEST_P(EmulatedNetworks, DoWithoutWhatTheLibraryLacksInBatches) {
  struct Case {
    Refusals refusals;
    std::int64_t programs;
  };
  const auto in_batch = [](const ProductForm& form) { return form.networks.count > 1; };
  const auto fused = [=](const ProductForm& form) {
    return in_batch(form) && form.epilogue != Epilogue::none;
  };
  for (const Case& c :
       {Case{{.name = "none", .proposes_none = in_batch, .fails = {}}, count_of_copies},
        {{.name = "no epilogue", .proposes_none = fused, .fails = {}}, 1},
        {{.name = "an epilogue fails",
        .proposes_none = {},
        .fails = [=](const ProductForm&form, int /*algorithm*/) { return fused(form); }},
         1},
        {{.name = "fail",
        .proposes_none = {},
        .fails = [=](const ProductForm&form, int /*algorithm*/) { return in_batch(form); }},
         count_of_copies}}) {
    SCOPED_TRACE(c.refusals.name);
    const auto found = cuda::discover(0);
    expect_verified(*cuda::make_backend(found.device,
                                        [&](Precision precision) {
                                          return std::make_unique<RefusingLibrary>(precision,
                                                                                   c.refusals);
                                        }),
                    c.programs);
  }
}

INSTANTIATE_TEST_SUITE_P(Gpu, EmulatedNetworks, executions, labelled);

/// Each is another way of a small network.
TEST(EmulatedNetworksAutomatic, TrainAsTheFirstAloneIsFastest) {
  const Training training{epoch_of(count_of_copies), uniform_rows({4}, 13, 3)};
  const Trajectory expected =
      reference_trajectory(training.workload, training.data, std::ssize(training.workload.order));
  const auto own = gpu();
  const auto backend = make_copies_backend(*own, count_of_copies);
  const auto program = started(*backend, training, {.execution = Execution::automatic});
  ASSERT_TRUE(program->facts().chosen);
  const bool together = program->facts().chosen->execution != Execution::persistent;
  EXPECT_EQ(program->facts().copies, together ? count_of_copies : 1);
  EXPECT_NO_THROW(verify(*program, training.workload, expected));
}

}  // namespace
}  // namespace crossover::test
