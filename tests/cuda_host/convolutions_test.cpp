// SPDX-License-Identifier: Apache-2.0
// A library of convolutions that has less than it might: what can be had without is right, and what
// can't is told in a sentence.
#include "libraries/algorithms.h"

#include <gmock/gmock.h>

#include "crossover/catalogue.h"
#include "crossover/networks.h"
#include "crossover/start.h"
#include "crossover/verify.h"
#include "cuda_host.h"
#include "libraries/library.h"
#include "run/backend.h"
#include "support.h"

namespace crossover::test {
namespace {

using cuda::ConvolutionForm;
using cuda::ConvolutionPass;
using testing::HasSubstr;

/// The emulated cuDNN without the forms that are refused.
class RefusingConvolutions : public cuda::ConvolutionLibrary {
 public:
  using Refuses = std::function<bool(const ConvolutionForm&)>;

  RefusingConvolutions(Precision precision, std::int64_t memory_bytes, Refuses refuses)
      : library_(cuda::make_cudnn_library(precision, memory_bytes)), refuses_(std::move(refuses)) {}

  [[nodiscard]] int algorithms(const ConvolutionForm& form) override {
    return refuses_(form) ? 0 : library_->algorithms(form);
  }
  [[nodiscard]] std::unique_ptr<cuda::PreparedConvolution> make(const cuda::CalledConvolution& of,
                                                                int algorithm) override {
    return library_->make(of, algorithm);
  }

 private:
  std::unique_ptr<cuda::ConvolutionLibrary> library_;
  Refuses refuses_;
};

std::unique_ptr<Backend> gpu_without(const RefusingConvolutions::Refuses& refuses) {
  return cuda::make_backend(cuda::discover(0).device, cuda::make_cublaslt_library,
                            [refuses](Precision precision, std::int64_t memory_bytes) {
                              return std::make_unique<RefusingConvolutions>(precision, memory_bytes,
                                                                            refuses);
                            });
}

Training small(Precision precision = Precision::f32) {
  const Model model = small_alexnet();
  return {fuse(training_epoch(
              model, {.rows = 6, .batch = 3, .optimizer = SgdOptions{}, .precision = precision})),
          uniform_data(model, 6)};
}

/// What compile() says.
std::string refusal(const Backend& gpu, const Workload& workload, const CompileOptions& options) {
  return message_of<Unsupported>([&] { static_cast<void>(gpu.compile(workload, options)); });
}

void expect_right(const Backend& gpu, const CompileOptions& options) {
  const Training training = small();
  const auto program = started(gpu, training, options);
  program->enqueue(0, 2);
  EXPECT_NO_THROW(verify(*program, training.workload,
                         reference_trajectory(training.workload, training.data, 2)));
}

TEST(EmulatedConvolution, WithoutFusedPlansIsRight) {
  cuda_host::device().refuses_fused_convolutions = true;
  expect_right(*make_cuda_backend().backend, {});
  expect_right(*gpu_without([](const ConvolutionForm& form) { return form.relu; }), {});
}

/// What the real cuDNN has: forms of one type, operation by operation right.
TEST(EmulatedConvolution, OfOneTypeIsEnough) {
  const auto gpu =
      gpu_without([](const ConvolutionForm& form) { return form.type != form.result; });
  const Model model = small_alexnet();
  for (const Precision precision : {Precision::bf16, Precision::f16}) {
    for (const std::int64_t accumulate : {1, 2}) {
      const Training training{
          gpu->optimize(training_epoch(model, {.rows = 6,
                                               .batch = 3,
                                               .optimizer = AdamWOptions{.learning_rate = 0.01},
                                               .accumulate = accumulate,
                                               .precision = precision})),
          uniform_data(model, 6)};
      const auto program = started(*gpu, training, {.precision = precision});
      program->enqueue(0, 2);
      EXPECT_NO_THROW(verify(*program, training.workload,
                             reference_trajectory(training.workload, training.data, 2), precision));
      const auto kept = started(*gpu, training, {.precision = precision, .keep_activations = true});
      Reference reference(training.workload);
      set_data(reference, training.data);
      EXPECT_NO_THROW(verify_operations(*kept, reference, 2, precision));
    }
  }
}

TEST(EmulatedConvolution, SaysWhichEngineItTook) {
  using Engines = std::map<std::string, std::int64_t>;
  cuda_host::device().failing_plans = 1;
  EXPECT_EQ(started(*make_cuda_backend().backend, small(), {})->facts().library_engines,
            (Engines{{"dw eng1", 3}, {"dx eng1", 2}, {"forward eng1 fused", 3}}));
  cuda_host::device().refuses_fused_convolutions = true;
  EXPECT_EQ(started(*make_cuda_backend().backend, small(), {})->facts().library_engines,
            (Engines{{"dw eng1", 3}, {"dx eng1", 2}, {"forward eng1", 3}}));
}

TEST(EmulatedConvolution, SaysWhichFormIsMissing) {
  const auto gpu =
      gpu_without([](const ConvolutionForm& form) { return form.pass == ConvolutionPass::dw; });
  EXPECT_THAT(refusal(*gpu, small().workload, {}),
              HasSubstr("cuDNN has no algorithm for the gradient for the weights of a convolution "
                        "of [3, 3, 3, 3] to [3, 2, 3, 3], window 5, stride 1, padding 2"));
}

TEST(EmulatedConvolution, OfABuildWithoutCudnnIsRefusedAndTheRestRuns) {
  cuda_host::device().no_cudnn = "this build has no cuDNN: as the test says";
  const auto gpu = make_cuda_backend().backend;
  EXPECT_EQ(refusal(*gpu, small().workload, {}), "this build has no cuDNN: as the test says");
  const Model model = mlp("m", {4, 3}, Activation::relu);
  const Training training{training_epoch(model, {.rows = 5, .batch = 5, .optimizer = SgdOptions{}}),
                          uniform_data(model, 5)};
  const auto program = started(*gpu, training, {});
  program->enqueue(0, 1);
  program->wait();
}

TEST(EmulatedConvolution, TakesTheFirstPlanThatRuns) {
  cuda_host::device().failing_plans = 1;
  expect_right(*make_cuda_backend().backend, {});
  cuda_host::device().failing_plans = ~0U;
  EXPECT_THAT(refusal(*make_cuda_backend().backend, small().workload, {}),
              HasSubstr("cuDNN has no algorithm for "));
}

TEST(EmulatedConvolution, IsTimedWhereThatIsAsked) {
  const Training training = small();
  for (const ConvolutionChoice choice :
       {ConvolutionChoice::heuristic, ConvolutionChoice::benchmark}) {
    cuda_host::reset();
    const auto gpu = make_cuda_backend().backend;
    const auto program = started(*gpu, training, {.convolutions = choice});
    const std::int64_t made = cuda_host::calls_of("cudnnMake");
    program->enqueue(0, 2);
    program->wait();
    EXPECT_EQ(cuda_host::calls_of("cudnnMake"), made) << "made while it ran";
    constexpr std::int64_t forms = 8;  // three forward, three dw, two dx
    constexpr std::int64_t proposed = 3;
    EXPECT_EQ(made, choice == ConvolutionChoice::benchmark ? forms * proposed : forms);
  }
  expect_right(*make_cuda_backend().backend, {.convolutions = ConvolutionChoice::benchmark});
}

TEST(EmulatedConvolution, ThatIsNotCapturedRunsEagerly) {
  cuda_host::device().cudnn_refuses_capture = true;
  const auto gpu = make_cuda_backend().backend;
  for (const Execution execution : {Execution::graph, Execution::graph_epoch}) {
    EXPECT_THAT(refusal(*gpu, small().workload, {.execution = execution}),
                HasSubstr("cuDNN's convolutions can't be captured into a CUDA graph: "));
  }
  expect_right(*gpu, {});
}

}  // namespace
}  // namespace crossover::test
