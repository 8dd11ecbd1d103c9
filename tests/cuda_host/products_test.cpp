// SPDX-License-Identifier: Apache-2.0
// Libraries that refuse products, when they are asked or when they are to run: what can be had
// without is right, and what can't is told by its form.
#include "libraries/algorithms.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "crossover/start.h"
#include "crossover/verify.h"
#include "refusing_library.h"
#include "run/backend.h"
#include "support.h"

namespace crossover::test {
namespace {

using cuda::Epilogue;
using cuda::ProductForm;
using testing::HasSubstr;

std::unique_ptr<Backend> gpu_with(const Refusals& refusals) {
  const cuda::Discovery found = cuda::discover(0);
  return cuda::make_backend(found.device, [refusals](Precision precision) {
    return std::make_unique<RefusingLibrary>(precision, refusals);
  });
}

bool has_odd_leading_dimension(const ProductForm& form) {
  const std::int64_t a = form.transpose_a ? form.k : form.m;
  const std::int64_t b = form.transpose_b ? form.n : form.k;
  return a % 2 != 0 || b % 2 != 0 || form.m % 2 != 0;
}

bool has_epilogue(const ProductForm& form) { return form.epilogue != Epilogue::none; }

Refusals no(Epilogue epilogue, const std::string& name) {
  return {.name = "no_" + name,
          .proposes_none = [=](const ProductForm& form) { return form.epilogue == epilogue; },
          .fails = {}};
}

Refusals no_epilogue_where(const std::string& name, std::int64_t ProductForm::*extent) {
  return {.name = "no_epilogue_at_" + name + "_1",
          .proposes_none =
              [=](const ProductForm& form) { return has_epilogue(form) && form.*extent == 1; },
          .fails = {}};
}

/// With all of these every product can still be had in some form.
std::vector<Refusals> survivable() {
  return {
      {.name = "nothing", .proposes_none = {}, .fails = {}},
      no_epilogue_where("m", &ProductForm::m),
      no_epilogue_where("n", &ProductForm::n),
      no_epilogue_where("k", &ProductForm::k),
      no(Epilogue::drelu, "drelu"),
      no(Epilogue::drelu_bias_sum, "drelu_bias_sum"),
      no(Epilogue::b_sum, "b_sum"),
      no(Epilogue::relu_mask_bias, "relu_mask_bias"),
      no(Epilogue::relu_bias, "relu_bias"),
      no(Epilogue::bias, "bias"),
      {.name = "no_epilogue_at_odd_leading_dimensions",
       .proposes_none =
           [](const ProductForm& form) {
             return has_epilogue(form) && has_odd_leading_dimension(form);
           },
       .fails = {}},
      {.name = "no_epilogue_on_unaligned_addresses",
       .proposes_none =
           [](const ProductForm& form) {
             return has_epilogue(form) && std::min(form.alignment_a, form.alignment_b) < 16;
           },
       .fails = {}},
      {.name = "best_guess_fails",
       .proposes_none = {},
       .fails = [](const ProductForm& /*form*/, int algorithm) { return algorithm == 0; }},
      {.name = "all_but_the_last_fail_at_odd_extents",
       .proposes_none = {},
       .fails = [](const ProductForm& form,
                   int algorithm) { return form.m % 2 != 0 && algorithm < 2; }},
      {.name = "every_epilogue_fails",
       .proposes_none = {},
       .fails = [](const ProductForm& form, int /*algorithm*/) { return has_epilogue(form); }},
      {.name = "every_mask_fails",
       .proposes_none = {},
       .fails = [](const ProductForm& form,
                   int /*algorithm*/) { return uses_mask(form.epilogue); }},
  };
}

struct Network {
  std::string name;
  std::vector<std::int64_t> widths;
  std::int64_t rows, batch;
};

const std::vector<Network>& networks() {
  static const std::vector<Network> all{
      {"usual", {4, 8, 6, 2}, 15, 5},          {"batch_of_one", {4, 8, 6, 2}, 3, 1},
      {"last_batch_of_one", {4, 7, 2}, 11, 5}, {"width_one", {4, 1, 1, 3}, 15, 5},
      {"one_feature", {1, 6, 2}, 11, 5},
  };
  return all;
}

Workload epoch(const Network& network, Precision precision) {
  return fuse(training_epoch(mlp(network.name, network.widths, Activation::relu),
                             {.rows = network.rows,
                              .batch = network.batch,
                              .optimizer = AdamWOptions{.learning_rate = 0.01},
                              .precision = precision}));
}

class EmulatedRefusal : public testing::TestWithParam<std::tuple<Refusals, Precision>> {};

TEST_P(EmulatedRefusal, LeavesTheTrainingRight) {
  const auto& [refusals, precision] = GetParam();
  const auto gpu = gpu_with(refusals);
  for (const Network& network : networks()) {
    SCOPED_TRACE(network.name);
    const Workload workload = epoch(network, precision);
    const Dataset data =
        uniform_rows({network.widths.front()}, network.rows, network.widths.back());
    const auto steps = std::ssize(workload.order);
    const Trajectory expected = reference_trajectory(workload, data, steps);
    for (const Execution execution : {Execution::eager, Execution::graph_epoch}) {
      for (const ProductChoice products : {ProductChoice::heuristic, ProductChoice::autotuned}) {
        const CompileOptions options{
            .precision = precision, .execution = execution, .products = products};
        const auto program = started(*gpu, {workload, data}, options);
        if (!refusals.fails) {  // else the plan is made anew
          EXPECT_EQ(static_cast<std::int64_t>(cuda_host::live_device_bytes()),
                    gpu->plan(workload, options)->bytes());
          EXPECT_EQ(gpu->plan(workload, options)->launches(), program->facts().launches);
        }
        program->enqueue(0, steps);
        EXPECT_NO_THROW(verify_state(*program, workload, expected, precision));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Gpu, EmulatedRefusal,
                         testing::Combine(testing::ValuesIn(survivable()),
                                          testing::Values(Precision::f32, Precision::f16)),
                         labelled);

/// What compiling says.
std::string refusal(const Refusals& refusals, Precision precision,
                    ProductChoice products = ProductChoice::heuristic) {
  return message_of<Unsupported>([&] {
    const auto gpu = gpu_with(refusals);
    static_cast<void>(gpu->compile(epoch(networks().front(), precision),
                                   {.precision = precision, .products = products}));
  });
}

TEST(EmulatedRefusal, OfAPlainProductNamesItsForm) {
  const Refusals odd{
      .name = "odd_16_bits",
      .proposes_none =
          [](const ProductForm& form) { return form.factors != Type::f32 && form.k % 2 != 0; },
      .fails = {}};
  EXPECT_EQ(refusal(odd, Precision::f32), "");
  // The batch of 5 is the first weight gradient's k.
  EXPECT_EQ(refusal(odd, Precision::bf16),
            "cuBLASLt has no algorithm for a product of m=6 n=2 k=5, bf16 to f32, B transposed, "
            "epilogue: none");
}

TEST(EmulatedRefusal, Of16BitsLeavesTheOtherProductsRight) {
  const auto gpu =
      gpu_with({.name = "odd_16_bits",
                .proposes_none =
                    [](const ProductForm& form) {
                      return form.factors != Type::f32 && has_odd_leading_dimension(form);
                    },
                .fails = {}});
  int refused = 0;
  int right = 0;
  for (const OperationCase& c : operation_cases()) {
    SCOPED_TRACE(c.name);
    if (stored_precision(c.workload) == Precision::f32 || !multiplies(c) ||
        (thinned() && is_large(c))) {
      continue;
    }
    const std::string refusal =
        expect_operation_or_refusal(c, *gpu, {.precision = stored_precision(c.workload)});
    if (!refusal.empty()) {
      EXPECT_THAT(refusal, testing::MatchesRegex("cuBLASLt has no algorithm for a product of "
                                                 "m=[0-9]+ n=[0-9]+ k=[0-9]+, b?f16 to .*"));
    }
    ++(refusal.empty() ? right : refused);
  }
  EXPECT_GT(refused, 20);
  EXPECT_GT(right, 10);
}

TEST(EmulatedRefusal, OfEveryAlgorithmWhenRunIsUnsupported) {
  const Refusals all{.name = "all",
                     .proposes_none = {},
                     .fails = [](const ProductForm& /*form*/, int /*algorithm*/) { return true; }};
  for (const ProductChoice products : {ProductChoice::heuristic, ProductChoice::autotuned}) {
    EXPECT_THAT(refusal(all, Precision::f32, products),
                HasSubstr("cuBLASLt has no algorithm for a product of m=8 n=5 k=4, A transposed, "
                          "epilogue: none"));
  }
}

TEST(EmulatedRefusal, ByCublasLtItselfTakesTheNextAlgorithm) {
  cuda_host::device().failing_algorithms = 1;  // the heuristic's best guess
  const Network& network = networks().front();
  const Workload workload = epoch(network, Precision::f32);
  const auto program =
      started(*make_cuda_backend().backend, {workload, uniform_rows({4}, network.rows, 2)}, {});
  const std::int64_t before = cuda_host::products_by(1);
  program->enqueue(0, std::ssize(workload.order));
  program->wait();
  EXPECT_EQ(cuda_host::products_by(0), 0);
  EXPECT_GT(cuda_host::products_by(1), before);
}

TEST(EmulatedLibrary, ThatTheMemoryDoesNotHoldIsNoFailure) {
  const Workload workload = epoch(networks().front(), Precision::f32);
  const FoundBackend made = make_cuda_backend();
  cuda_host::device().bytes = std::size_t{100} << 20U;
  cuda_host::device().library_bytes = std::size_t{101} << 20U;
  const auto compile = [&] { static_cast<void>(made.backend->compile(workload, {})); };
  EXPECT_THAT(message_of<OutOfMemory>(compile),
              HasSubstr("does not hold cuBLASLt: 104857600 of 104857600 bytes"));
  cuda_host::device().bytes = std::size_t{1} << 30U;  // enough, and it fails all the same
  cuda_host::device().library_bytes = std::size_t{2} << 30U;
  EXPECT_THROW(EXPECT_EQ(message_of<OutOfMemory>(compile), "") << "taken for a want of memory",
               std::runtime_error);
}

TEST(EmulatedRefusal, StopsWhereTheDeviceHasFailed) {
  const Refusals lost{.name = "lost", .proposes_none = {}, .fails = {}};
  const Workload workload = epoch(networks().front(), Precision::f32);
  const auto gpu = gpu_with(lost);
  cuda_host::fail_execution(1, cudaErrorLaunchFailure);
  EXPECT_THROW(static_cast<void>(gpu->compile(workload, {})), DeviceFailed);
}

}  // namespace
}  // namespace crossover::test
