// SPDX-License-Identifier: Apache-2.0
// Networks of images and sequences on the emulation: thin ones in every mode and precision against
// the reference, and the small golden runs.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "crossover/catalogue.h"
#include "crossover/networks.h"
#include "crossover/start.h"
#include "crossover/verify.h"
#include "cuda_host.h"
#include "golden.h"
#include "support.h"

namespace crossover::test {
namespace {

/// Without batch normalization, which magnifies rounding where a channel has few elements.
std::vector<Model> plain_models() {
  return {
      small_alexnet(),
      small_language_model(),
      gpt({.vocabulary = 7, .width = 6, .layers = 2, .heads = 2, .time = 5}),
      vit({.image = 6, .patch = 2, .width = 6, .layers = 1, .heads = 2, .classes = 3}),
      joined_model(),
      places_model(),
      parts_model(),
      asking_model(),
      upsampled_model(),
      line_model(),
      padded_model(),
      strided_model(),
      half_frozen(small_alexnet()),
      half_frozen(gpt({.vocabulary = 7, .width = 6, .layers = 2, .heads = 2, .time = 5})),
      half_frozen(small_language_model(), true),
  };
}

/// Every operation on images and sequences, odd extents, a window over the edge, an image that is
/// normalized as it comes in.
std::vector<Model> thin_models() {
  Model odd{.name = "odd", .sample = {2, 7, 5}, .classes = 3, .layers = {}};
  Value value = odd.add(BatchNormLayer{}, {0});
  value = odd.add(DropoutLayer{0.3}, {value});
  value = odd.add(AveragePoolLayer{{.size = 3, .stride = 2, .padding = 1}}, {value});
  value = odd.add(ConvolutionLayer{4, {.size = 2, .stride = 2, .padding = 1}}, {value});
  value = odd.add(MaxPoolLayer{{.size = 2, .padding = 1, .ceil = true}}, {value});
  odd.add(LinearLayer{3}, {odd.add(FlattenLayer{}, {value})});
  std::vector<Model> all = plain_models();
  all.insert(all.end(), {odd, small_resnet(),
                         mobilenet({.image = 9,
                                    .stem = 3,
                                    .stages = {{1, 2, 1, 1}, {2, 3, 2, 2}},
                                    .head = 4,
                                    .classes = 3}),
                         small_resnet_s()});
  return all;
}

constexpr std::int64_t rows = 8;
constexpr std::int64_t batch = 3;  // and a last one of 2

Training training_of(const Model& model, Precision precision) {
  return {fuse(training_epoch(model, {.rows = rows,
                                      .batch = batch,
                                      .optimizer = SgdOptions{},
                                      .accumulate = 2,
                                      .precision = precision})),
          uniform_data(model, rows)};
}

class EmulatedNetwork : public testing::TestWithParam<Model> {};

TEST_P(EmulatedNetwork, IsVerifiedInEveryMode) {
  const Training training = training_of(GetParam(), Precision::f32);
  const auto steps = std::ssize(training.workload.order);
  const Trajectory expected = reference_trajectory(training.workload, training.data, steps);
  std::size_t number = 0;
  for (const GpuMode& mode : gpu_modes()) {
    if (number++ % 3 != 0 && !test_all()) {
      continue;  // each execution and each placement is left
    }
    cuda_host::reset(number);
    const auto program = started(*make_cuda_backend().backend, training, mode.options);
    program->wait();
    const std::int64_t before = cuda_host::executed();
    program->enqueue(0, steps);
    program->wait();
    if (mode.options.execution == Execution::eager) {
      EXPECT_EQ(cuda_host::executed() - before, program->facts().launches);
    }
    EXPECT_NO_THROW(verify(*program, training.workload, expected)) << mode.name;
  }
}

/// Gradients that are added to and set to zero train what gradients that are overwritten do.
TEST_P(EmulatedNetwork, MayKeepItsGradients) {
  TrainingOptions options{.rows = rows, .batch = batch, .optimizer = MomentumOptions{}};
  const Dataset data = uniform_data(GetParam(), rows);
  const Workload overwrites = training_epoch(GetParam(), options);
  const auto steps = std::ssize(overwrites.order);
  const Trajectory expected = reference_trajectory(overwrites, data, steps);
  options.zero_gradients = true;
  const auto gpu = make_cuda_backend().backend;
  const Training kept{gpu->optimize(training_epoch(GetParam(), options)), data};
  for (const Execution execution : {Execution::eager, Execution::graph, Execution::graph_epoch}) {
    cuda_host::reset(3);
    const auto program = started(*make_cuda_backend().backend, kept, {.execution = execution});
    EXPECT_NO_THROW(verify(*program, kept.workload, expected));
  }
}

class EmulatedPlainNetwork : public testing::TestWithParam<Model> {};

TEST_P(EmulatedPlainNetwork, IsVerifiedInEveryPrecision) {
  for (const Precision precision : {Precision::tf32, Precision::bf16, Precision::f16}) {
    const Training training = training_of(GetParam(), precision);
    const auto steps = std::ssize(training.workload.order);
    const Trajectory expected = reference_trajectory(training.workload, training.data, steps);
    const std::vector<std::string> operations = names_of(training.workload.steps.front());
    const bool convolves = std::ranges::count(operations, "Convolution") > 0;
    for (const bool fused : {true, false}) {
      if (!fused && !convolves) {
        continue;  // nothing that could be refused
      }
      cuda_host::reset(2);
      cuda_host::device().refuses_fused_convolutions = !fused;
      const auto program = started(*make_cuda_backend().backend, training,
                                   {.precision = precision, .execution = Execution::graph});
      program->enqueue(0, steps);
      EXPECT_NO_THROW(verify(*program, training.workload, expected, precision))
          << to_string(precision) << fused;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Thin, EmulatedNetwork, testing::ValuesIn(thin_models()), labelled);
INSTANTIATE_TEST_SUITE_P(Thin, EmulatedPlainNetwork, testing::ValuesIn(plain_models()), labelled);

class EmulatedGoldenNetwork : public testing::TestWithParam<Golden> {};

TEST_P(EmulatedGoldenNetwork, Trajectory) {
  if (GetParam().large) {
    GTEST_SKIP() << "large: hours on the emulation";
  }
  // A short transformer is left.
  const std::set<std::string> long_ones{"resnet-20", "gpt-16",      "gpt-32",
                                        "gpt-64",    "microgpt-16", "mobilenet-small"};
  if (long_ones.contains(GetParam().name) && !test_all()) {
    GTEST_SKIP() << "long on the emulation: with CROSSOVER_TEST_ALL";
  }
  const Training training = GetParam().training(Form::fused);
  expect_golden(GetParam(), training,
                *started(*make_cuda_backend().backend, training,
                         {.execution = Execution::graph, .placement = Placement::pinned_async}));
}

INSTANTIATE_TEST_SUITE_P(Networks, EmulatedGoldenNetwork, testing::ValuesIn(golden_networks()),
                         labelled);

}  // namespace
}  // namespace crossover::test
