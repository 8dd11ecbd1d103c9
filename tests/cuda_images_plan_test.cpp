// SPDX-License-Identifier: Apache-2.0
// What the CUDA backend decides for networks of images and sequences: layouts, what is fused into a
// convolution, launches. Needs no CUDA.
#include <gtest/gtest.h>

#include <algorithm>

#include "../src/cuda/plan/tensor_places.h"
#include "crossover/backend.h"
#include "crossover/networks.h"
#include "cuda_plans.h"

namespace crossover::test {
namespace {

using cuda::ConvolutionForm;
using cuda::ConvolutionLaunch;
using cuda::ConvolutionPass;
using cuda::LaunchPlan;

bool none_fused(const ConvolutionForm& form) { return !form.bias && !form.relu; }

Workload images_epoch(const Model& model, Precision precision = Precision::f32) {
  return fuse(training_epoch(
      model, {.rows = 4, .batch = 4, .optimizer = AdamWOptions{}, .precision = precision}));
}

Workload alexnet_epoch(Precision precision = Precision::f32) {
  return images_epoch(small_alexnet(), precision);
}

LaunchPlan plan_of(const Workload& workload,
                   const cuda::SupportsConvolution& convolutions = cuda::any_convolution,
                   Precision precision = Precision::f32) {
  return cuda::make_plan(workload, {.precision = precision}, everything, convolutions);
}

template <class L>
std::int64_t count_of(const LaunchPlan& plan) {
  return std::ssize(cuda::launches_of<L>(plan));
}

TEST(CudaLayout, OfImagesAndTheirWeightsIsChannelsLastButInF32) {
  for (const Precision precision : {Precision::f32, Precision::tf32, Precision::bf16}) {
    const Workload workload = alexnet_epoch(precision);
    const LaunchPlan plan = plan_of(workload, cuda::any_convolution, precision);
    const cuda::Layout expected =
        precision == Precision::f32 ? cuda::Layout::plain : cuda::Layout::channels_last;
    for (const ConvolutionLaunch& launch : cuda::launches_of<ConvolutionLaunch>(plan)) {
      EXPECT_EQ(launch.form.layout, expected);
    }
    int images = 0;
    for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
      const Tensor& tensor = workload.tensors[i];
      if (plan.tensors[i].offset < 0 && tensor.role != Role::input) {
        continue;  // fused away
      }
      const bool is_image = tensor.shape.size() == 4;
      images += is_image ? 1 : 0;
      EXPECT_EQ(plan.tensors[i].layout, is_image ? expected : cuda::Layout::plain) << tensor.name;
    }
    EXPECT_GT(images, 0);
  }
}

TEST(CudaLayout, OfFourDimensionsWithoutAnImageOperationIsPlain) {
  OneOp one;
  const Id a = one.tensor("a", {2, 3, 4, 5});
  const Id b = one.tensor("b", {2, 3, 4, 5});
  one.operation(Add{.a = a, .b = b, .y = one.tensor("y", {2, 3, 4, 5})});
  const std::vector<cuda::Layout> layouts = cuda::choose_layouts(one.workload, Precision::tf32);
  EXPECT_EQ(std::count(layouts.begin(), layouts.end(), cuda::Layout::plain), 3);
}

TEST(CudaLayout, IsRefusedWhereRowsOfFeaturesAreReadFromAnImage) {
  OneOp one;
  const Id x = one.tensor("x", {2, 3, 4, 5});
  const Id pooled = one.tensor("pooled", {2, 3});
  one.operation(Pool{.kind = PoolKind::global_average, .x = x, .y = pooled});
  one.workload.steps[0].ops.emplace_back(
      Linear{.x = x, .w = one.tensor("w", {6, 5}), .y = one.tensor("y", {2, 3, 4, 6})});
  for (const Precision precision : {Precision::f32, Precision::tf32}) {
    EXPECT_THROW(cuda::choose_layouts(one.workload, precision), Unsupported);
  }
}

TEST(CudaConvolutionPlan, FusesBiasAndReluWhereTheLibraryDoes) {
  const Workload workload = alexnet_epoch();
  const LaunchPlan fused = plan_of(workload);
  for (const ConvolutionLaunch& launch : cuda::launches_of<ConvolutionLaunch>(fused)) {
    const bool forward = launch.form.pass == ConvolutionPass::forward;
    EXPECT_EQ(launch.form.bias, forward);
    EXPECT_EQ(launch.bias.exists(), forward);
    EXPECT_EQ(launch.form.result, Type::f32);
  }
  // Three forward, three dw, and dx of all but the first.
  EXPECT_EQ(count_of<ConvolutionLaunch>(fused), 8);
  EXPECT_EQ(count_of<cuda::ChannelBiasLaunch>(fused), 0);
  const LaunchPlan separate = plan_of(workload, none_fused);
  EXPECT_EQ(count_of<ConvolutionLaunch>(separate), 8);
  EXPECT_EQ(count_of<cuda::ChannelBiasLaunch>(separate), 3);
  EXPECT_EQ(cuda::count_launches(workload, separate), cuda::count_launches(workload, fused) + 3);
}

/// As the real cuDNN, which has none of the plans that the other types would need.
TEST(CudaConvolutionPlan, WritesInTheTypeInWhichItReads) {
  for (const std::int64_t accumulate : {1, 2}) {
    const Workload workload = make_planned_gpu()->optimize(
        training_epoch(small_alexnet(), {.rows = 8,
                                         .batch = 4,
                                         .optimizer = AdamWOptions{},
                                         .accumulate = accumulate,
                                         .precision = Precision::bf16}));
    check(workload, Precision::bf16);
    const LaunchPlan plan = plan_of(workload);
    for (const ConvolutionLaunch& launch : cuda::launches_of<ConvolutionLaunch>(plan)) {
      EXPECT_EQ(launch.form.type, Type::bf16);
      EXPECT_EQ(launch.form.result, Type::bf16);
      EXPECT_EQ(launch.form.bias, launch.form.pass == ConvolutionPass::forward);
    }
    std::vector<Type> gradients;
    for (const auto& launch : cuda::launches_of<cuda::UpdateLaunch>(plan)) {
      for (const auto& span : launch.spans) {
        gradients.push_back(span.g.type);
      }
    }
    // Weights of convolutions lie together, so they are one span; sums are f32.
    EXPECT_EQ(std::count(gradients.begin(), gradients.end(), Type::bf16), accumulate == 1 ? 1 : 0);
    EXPECT_GT(std::count(gradients.begin(), gradients.end(), Type::f32), 0);
  }
}

TEST(CudaConvolutionPlan, FusesNothingOnOddAddresses) {
  for (const std::int64_t channels : {3, 8}) {
    OneOp one;
    const Id data = one.tensor("data", {4, channels, 3, 3}, Role::data);
    const Id x = one.tensor("x", {1, channels, 3, 3}, Role::input);
    one.workload.tensors[static_cast<std::size_t>(x)].source = data;
    one.operation(Convolution{.x = x,
                              .w = one.tensor("w", {2, channels, 1, 1}),
                              .bias = one.tensor("bias", {2}),
                              .y = one.tensor("y", {1, 2, 3, 3}),
                              .window = {.size = 1}});
    one.workload.order = {{.step = 0, .first_row = 1}};
    const auto launches = cuda::launches_of<ConvolutionLaunch>(plan_of(one.workload));
    ASSERT_EQ(launches.size(), 1);
    EXPECT_EQ(launches[0].form.is_fused(), channels == 8) << launches[0].form.alignment;
  }
}

TEST(CudaConvolutionPlan, ReservesTheWorkspaceOfTheLibraryThatNeedsMore) {
  EXPECT_EQ(plan_of(alexnet_epoch()).workspace_bytes, cuda::most_workspace_for_cudnn);
  EXPECT_EQ(cuda::workspace_for_cudnn(std::int64_t{80} << 30), 256 << 20);
  EXPECT_EQ(cuda::workspace_for_cudnn(std::int64_t{4} << 30), 128 << 20);
  EXPECT_EQ(plan_of(images_epoch(mlp("m", {4, 3}, Activation::relu))).workspace_bytes,
            cuda::workspace_for_products);
}

TEST(CudaConvolutionPlan, CountsTheReordersThatFlatteningIs) {
  const Workload workload = alexnet_epoch();
  EXPECT_EQ(cuda::count_reorders(workload, plan_of(workload)).count, 0);
  const LaunchPlan plan = plan_of(workload, cuda::any_convolution, Precision::tf32);
  // Only where more than one pixel and more than one channel are flattened, there and back.
  const auto reshapes = cuda::launches_of<cuda::ReshapeLaunch>(plan);
  EXPECT_GT(reshapes.size(), 0);
  EXPECT_EQ(cuda::count_reorders(workload, plan).count,
            std::count_if(reshapes.begin(), reshapes.end(),
                          [](const auto& reshape) { return reshape.moves(); }));
}

TEST(CudaColumnSums, OfTallMatricesTakeTwoLaunches) {
  for (const std::int64_t rows : {100, 100'000}) {
    OneOp one;
    one.operation(LinearGrad{.x = one.tensor("x", {rows, 5}),
                             .w = one.tensor("w", {3, 5}),
                             .dy = one.tensor("dy", {rows, 3}),
                             .dx = none,
                             .dw = one.tensor("dw", {3, 5}),
                             .dbias = one.tensor("dbias", {3})});
    const LaunchPlan plan = cuda::make_plan(one.workload, {}, [](const cuda::ProductForm& form) {
      return form.epilogue == cuda::Epilogue::none;
    });
    const auto sums = cuda::launches_of<cuda::ColumnSumsLaunch>(plan);
    ASSERT_EQ(sums.size(), rows == 100 ? 1 : 2);
    EXPECT_EQ(sums.front().rows, rows);
    EXPECT_EQ(sums.back().rows, rows == 100 ? rows : sums.front().parts);
    EXPECT_EQ(sums.back().parts, 1);
  }
}

TEST(CudaTransformerPlan, HasOneLaunchEachWayOfTheLibrarysAttentionIn16Bits) {
  const Model model = gpt({.vocabulary = 7, .width = 16, .layers = 2, .heads = 2, .time = 5});
  const Workload workload = images_epoch(model, Precision::bf16);
  const auto plan = [&](const cuda::SupportsSdpa& sdpas) {
    return cuda::make_plan(workload, {.precision = Precision::bf16}, everything,
                           cuda::any_convolution, {}, true, std::int64_t{80} << 30, sdpas);
  };
  const LaunchPlan with = plan(cuda::any_sdpa);
  EXPECT_EQ(count_of<cuda::SdpaLaunch>(with), 4);
  EXPECT_EQ(count_of<cuda::AttentionLaunch>(with), 0);
  const LaunchPlan forward =
      plan([](const cuda::SdpaForm& form) { return !form.gradient && form.causal; });
  EXPECT_EQ(count_of<cuda::SdpaLaunch>(forward), 2);
  EXPECT_EQ(count_of<cuda::AttentionLaunch>(forward), 0);
  EXPECT_EQ(count_of<cuda::AttentionGradKeysLaunch>(forward), 2);
  EXPECT_EQ(count_of<cuda::SdpaLaunch>(plan_of(images_epoch(model))), 0) << "in f32";
  const LaunchPlan unrepeatable =
      plan([](const cuda::SdpaForm& form) { return !form.gradient || !form.repeats; });
  EXPECT_EQ(count_of<cuda::SdpaLaunch>(unrepeatable), 4) << "rather than kernels of ours";
  const auto workspace = [&](bool repeats, std::int64_t gib, std::int64_t time = 2048) {
    const cuda::SdpaForm form{
        .gradient = true, .time = time, .batch = 8, .heads = 16, .d = 64, .repeats = repeats};
    return cuda::workspace_for_sdpa(form, gib << 30) >> 20;
  };
  EXPECT_EQ(workspace(true, 80), 256 + 1024) << "MiB: a number in 16 bits for each score";
  EXPECT_EQ(workspace(true, 8), 1024) << "an eighth of the memory";
  EXPECT_EQ(workspace(false, 80), 256);
  EXPECT_EQ(workspace(false, 24, 4096), 2 * 128 + 4) << "two in f32 for each number of the queries";
}

TEST(CudaRearrange, JoinsWhatRunsOnWhereverChannelsLie) {
  for (const Precision precision : {Precision::f32, Precision::tf32}) {
    OneOp one;
    const std::vector<Shape> shapes{{2, 3, 4, 5}, {2, 6, 4, 5}};
    const Id a = one.tensor("a", shapes[0]);
    const Id b = one.tensor("b", shapes[1]);
    const Id y = one.tensor("y", {2, 9, 4, 5});
    one.operation(Rearrange{.x = {a, b}, .y = {y}, .blocks = joined(shapes, 1)});
    one.workload.steps[0].ops.emplace_back(
        Pool{.kind = PoolKind::global_average, .x = a, .y = one.tensor("mean of a", {2, 3})});
    one.workload.steps[0].ops.emplace_back(
        Pool{.kind = PoolKind::global_average, .x = b, .y = one.tensor("mean of b", {2, 6})});
    one.workload.steps[0].ops.emplace_back(
        Pool{.kind = PoolKind::global_average, .x = y, .y = one.tensor("mean of y", {2, 9})});
    const auto copies = cuda::launches_of<cuda::RearrangeLaunch>(
        plan_of(one.workload, cuda::any_convolution, precision));
    ASSERT_EQ(copies.size(), 2);
    const bool is_plain = precision == Precision::f32;
    const cuda::CopiedExtents& of = copies[1].extents;
    EXPECT_EQ(copies[1].to_first, is_plain ? 60 : 3);
    EXPECT_EQ(of.count[0], is_plain ? 2 : 40);
    EXPECT_EQ(of.count[1], is_plain ? 120 : 6);
    EXPECT_EQ(of.to[0], is_plain ? 180 : 9);
    EXPECT_EQ(of.used, 2);
  }
}

TEST(CudaTransformerPlan, SumsTheParametersOfManyRowsInParts) {
  for (const std::int64_t rows : {127, 128, 100'000}) {
    OneOp one;
    const Id x = one.tensor("x", {rows, 40});
    const Id weight = one.tensor("weight", {40});
    const Id row = one.tensor("mean", {rows});
    one.operation(NormGrad{.kind = NormKind::layer,
                           .x = x,
                           .scale = weight,
                           .mean = row,
                           .inverse_deviation = row,
                           .dy = x,
                           .dscale = weight,
                           .dshift = weight});
    const LaunchPlan plan = plan_of(one.workload);
    const auto sums = cuda::launches_of<cuda::GroupNormGradSumsLaunch>(plan);
    ASSERT_EQ(sums.size(), 1);
    EXPECT_EQ(sums[0].parts, rows == 127 ? 1 : rows == 128 ? 2 : 128);
    EXPECT_EQ(count_of<cuda::ColumnSumsLaunch>(plan), rows == 127 ? 0 : 2);
    EXPECT_EQ(count_of<cuda::GroupNormGradLaunch>(plan), 0);  // nobody asks for dx
  }
}

}  // namespace
}  // namespace crossover::test
