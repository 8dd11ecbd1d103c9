// SPDX-License-Identifier: Apache-2.0
// Attention by the library in 16 bits, and by kernels of ours where that has none or it fails.
#include <gmock/gmock.h>

#include "crossover/catalogue.h"
#include "crossover/networks.h"
#include "crossover/start.h"
#include "crossover/verify.h"
#include "cuda_host.h"
#include "support.h"

namespace crossover::test {
namespace {

using Engines = std::map<std::string, std::int64_t>;
using testing::HasSubstr;

const Engines own_kernels{{"attention backward own", 2}, {"attention forward own", 2}};

Model small_gpt() {
  return gpt({.vocabulary = 7, .width = 16, .layers = 2, .heads = 2, .time = 5});
}

/// At the learning rates of the catalogue's.
Training training_of(const Model& model, const Dataset& data, const AdamWOptions& optimizer,
                     Precision precision) {
  return {fuse(training_epoch(
              model, {.rows = 6, .batch = 3, .optimizer = optimizer, .precision = precision})),
          data};
}

Training of_gpt(Precision precision) {
  return training_of(small_gpt(), uniform_sentences(5, 6, 7), {}, precision);
}

Training of_vit(Precision precision) {
  const Model model = vit({.image = 8, .patch = 4, .width = 16, .layers = 2, .heads = 2});
  return training_of(model, uniform_data(model, 6), {.learning_rate = 1e-4}, precision);
}

/// As a whole, and each operation by itself.
void expect_right(const Training& training, const CompileOptions& options) {
  const auto gpu = make_cuda_backend().backend;
  const auto program = started(*gpu, training, options);
  program->enqueue(0, 2);
  EXPECT_NO_THROW(verify(*program, training.workload,
                         reference_trajectory(training.workload, training.data, 2),
                         options.precision));
  CompileOptions keeps = options;
  keeps.keep_activations = true;
  const auto kept = started(*gpu, training, keeps);
  Reference reference(training.workload);
  set_data(reference, training.data);
  EXPECT_NO_THROW(verify_operations(*kept, reference, 2, options.precision));
}

Engines engines(const Training& training, const CompileOptions& options) {
  return started(*make_cuda_backend().backend, training, options)->facts().library_engines;
}

TEST(EmulatedSdpa, TrainsIn16Bits) {
  for (const Precision precision : {Precision::bf16, Precision::f16}) {
    for (const Training& training : {of_gpt(precision), of_vit(precision)}) {
      for (const Execution execution : {Execution::eager, Execution::graph}) {
        cuda_host::reset(3);
        const CompileOptions options{.precision = precision, .execution = execution};
        expect_right(training, options);
        Engines found = engines(training, options);
        EXPECT_EQ(found["attention forward eng0"], 2);
        EXPECT_EQ(found["attention backward eng0"], 2);
      }
    }
  }
}

TEST(EmulatedSdpa, TakesTheFirstPlanThatRuns) {
  const CompileOptions options{.precision = Precision::bf16};
  cuda_host::device().failing_plans = 1;
  EXPECT_EQ(engines(of_gpt(Precision::bf16), options),
            (Engines{{"attention backward eng1", 2}, {"attention forward eng1", 2}}));
  expect_right(of_gpt(Precision::bf16), options);
}

TEST(EmulatedSdpa, IsTimedWhereThatIsAsked) {
  const CompileOptions options{.precision = Precision::bf16,
                               .convolutions = ConvolutionChoice::benchmark};
  EXPECT_EQ(engines(of_gpt(Precision::bf16), options),
            (Engines{{"attention backward eng1", 2}, {"attention forward eng1", 2}}));
  expect_right(of_gpt(Precision::bf16), options);
}

TEST(EmulatedSdpa, GivesWayToOwnKernels) {
  const std::vector<void (*)()> ways{[] { cuda_host::device().refuses_sdpa = true; },
                                     [] { cuda_host::device().failing_plans = ~0U; },
                                     [] { cuda_host::device().no_cudnn = "as the test says"; }};
  for (const auto& prepare : ways) {
    cuda_host::reset(3);
    prepare();
    const CompileOptions options{.precision = Precision::bf16};
    EXPECT_EQ(engines(of_gpt(Precision::bf16), options), own_kernels);
    expect_right(of_gpt(Precision::bf16), options);
  }
}

TEST(EmulatedSdpa, IsNotForF32) { EXPECT_EQ(engines(of_gpt(Precision::f32), {}), own_kernels); }

TEST(EmulatedSdpa, DoesNotRepeatWhereNothingElseFits) {
  cuda_host::device().refuses_repeating_sdpa = true;
  const CompileOptions options{.precision = Precision::bf16};
  EXPECT_EQ(
      engines(of_gpt(Precision::bf16), options),
      (Engines{{"attention backward eng0, does not repeat", 2}, {"attention forward eng0", 2}}));
  expect_right(of_gpt(Precision::bf16), options);
}

/// The other tests of operations take the library where they can.
TEST(EmulatedSdpa, LeavesRightKernelsIn16Bits) {
  cuda_host::device().refuses_sdpa = true;
  const auto gpu = make_cuda_backend().backend;
  int found = 0;
  for (const OperationCase& c : operation_cases()) {
    const Precision precision = stored_precision(c.workload);
    if (c.name.starts_with("Attention") && !(thinned() && is_large(c)) &&
        (precision == Precision::bf16 || precision == Precision::f16)) {
      expect_operation(c, *gpu->compile(c.workload, {.precision = precision}), precision);
      ++found;
    }
  }
  EXPECT_GT(found, 0);
}

TEST(EmulatedSdpa, ThatIsNotCapturedRunsEagerly) {
  cuda_host::device().cudnn_refuses_capture = true;
  const Training training = of_gpt(Precision::bf16);
  EXPECT_THAT(
      message_of<Unsupported>([&] {
        static_cast<void>(make_cuda_backend().backend->compile(
            training.workload, {.precision = Precision::bf16, .execution = Execution::graph}));
      }),
      HasSubstr("cuDNN's attention can't be captured into a CUDA graph: "));
  expect_right(training, {.precision = Precision::bf16});
}

}  // namespace
}  // namespace crossover::test
