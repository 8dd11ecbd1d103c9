// SPDX-License-Identifier: Apache-2.0
// Convolutions by Winograd's products: edges of images, few and many blocks of channels, threads,
// golden runs, and what this execution does not take.
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "crossover/catalogue.h"
#include "crossover/networks.h"
#include "crossover/start.h"
#include "crossover/verify.h"
#include "golden.h"
#include "support.h"

namespace crossover::test {
namespace {

/// Processors with shorter vectors keep images in no blocks.
bool has_blocks() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") != 0;
#else
  return false;
#endif
}

struct WinogradCase {
  std::string name;
  Shape x;
  std::int64_t out;
  std::int64_t padding;
  bool bias;
};

std::vector<WinogradCase> winograd_cases() {
  return {
      {"one_result", {1, 16, 3, 3}, 16, 0, false},
      {"one_pixel", {2, 16, 1, 1}, 16, 1, true},
      {"even", {3, 16, 8, 8}, 16, 1, true},
      {"odd", {2, 16, 7, 9}, 32, 1, true},
      {"three_blocks", {2, 48, 5, 6}, 16, 1, false},
      {"to_three_blocks", {2, 32, 4, 5}, 48, 1, true},
      {"no_padding", {2, 16, 9, 6}, 16, 0, true},
      {"wide_padding", {2, 16, 4, 3}, 32, 2, true},
      {"one_row", {2, 32, 1, 40}, 16, 1, false},
      {"many_tiles", {5, 16, 33, 31}, 16, 1, true},  // shared by all threads
      {"most_channels", {1, 128, 6, 6}, 128, 1, true},
  };
}

Id image(OneOp& one, const std::string& name, const Shape& x, std::int64_t channels,
         std::int64_t grown) {
  return one.tensor(name, {x[0], channels, x[2] + grown, x[3] + grown});
}

OperationCase forward_case(const WinogradCase& c) {
  OneOp one;
  const Id x = image(one, "x", c.x, c.x[1], 0);
  const Id w = one.tensor("w", {c.out, c.x[1], 3, 3}, Role::parameter);
  const Id bias = c.bias ? one.tensor("bias", {c.out}, Role::parameter) : none;
  one.operation(Convolution{.x = x,
                            .w = w,
                            .bias = bias,
                            .y = image(one, "y", c.x, c.out, 2 * c.padding - 2),
                            .window = {.size = 3, .padding = c.padding},
                            .activation = c.bias ? Activation::relu : Activation::identity});
  return {c.name, one.workload};
}

OperationCase backward_case(const WinogradCase& c) {
  OneOp one;
  const Shape w{c.out, c.x[1], 3, 3};
  ConvolutionGrad op{.x = image(one, "x", c.x, c.x[1], 0),
                     .w = one.tensor("w", w, Role::parameter),
                     .dy = image(one, "dy", c.x, c.out, 2 * c.padding - 2),
                     .dx = image(one, "dx", c.x, c.x[1], 0),
                     .dw = one.tensor("dw", w, Role::gradient),
                     .dbias = none,
                     .window = {.size = 3, .padding = c.padding}};
  if (c.bias) {
    op.dbias = one.tensor("dbias", {c.out}, Role::gradient);
  }
  return {c.name, one.operation(op).workload};
}

class Winograd : public testing::TestWithParam<std::tuple<WinogradCase, int>> {
 protected:
  static void expect_right(const OperationCase& c) {
    if (!has_blocks()) {
      GTEST_SKIP() << "for processors with AVX2";
    }
    const auto program = make_cpu_backend()->compile(
        c.workload, {.threads = std::get<1>(GetParam()), .execution = Execution::winograd});
    EXPECT_EQ(program->facts().launches,
              std::holds_alternative<Convolution>(only_op(c.workload)) ? 1 : 2);
    expect_operation(c, *program, Precision::f32);
  }

 private:
  static const Op& only_op(const Workload& workload) { return workload.steps.at(0).ops.at(0); }
};

TEST_P(Winograd, ForwardMatchesTheReference) {
  expect_right(forward_case(std::get<0>(GetParam())));
}

TEST_P(Winograd, GradientsMatchTheReference) {
  expect_right(backward_case(std::get<0>(GetParam())));
}

INSTANTIATE_TEST_SUITE_P(Cpu, Winograd,
                         testing::Combine(testing::ValuesIn(winograd_cases()),
                                          testing::Values(1, 3)),
                         labelled);

/// Those with convolutions that it takes.
std::vector<Golden> golden_residuals() {
  std::vector<Golden> all = golden_networks();
  std::erase_if(all, [](const Golden& golden) { return !golden.name.starts_with("resnet"); });
  return all;
}

class WinogradGolden : public testing::TestWithParam<std::tuple<Golden, Form, int>> {};

TEST_P(WinogradGolden, Trajectory) {
  const auto& [golden, form, threads] = GetParam();
  if (!has_blocks()) {
    GTEST_SKIP() << "for processors with AVX2";
  }
  if ((golden.large && !test_all()) || left_to_others(form, threads)) {
    GTEST_SKIP() << "large, or like others: runs with CROSSOVER_TEST_ALL";
  }
  const Training training = golden.training(form);
  expect_golden(golden, training,
                *started(*make_cpu_backend(), training,
                         {.threads = threads, .execution = Execution::winograd}));
}

INSTANTIATE_TEST_SUITE_P(Network, WinogradGolden,
                         testing::Combine(testing::ValuesIn(golden_residuals()),
                                          testing::Values(Form::plain, Form::fused),
                                          testing::Values(1, 2)),
                         labelled);

Workload step_of(const Model& model, Precision precision) {
  return fuse(training_epoch(model, {.rows = 2, .batch = 2, .precision = precision}));
}

void expect_refused(const Workload& workload, Precision precision) {
  const std::string refused = message_of<Unsupported>([&] {
    static_cast<void>(make_cpu_backend()->plan(
        workload, {.precision = precision, .execution = Execution::winograd}));
  });
  EXPECT_NE(refused.find("3x3"), std::string::npos) << refused;
}

TEST(WinogradPlan, RefusesNetworksWithoutSuchConvolutions) {
  expect_refused(step_of(find_model("disc-2").model, Precision::f32), Precision::f32);
  expect_refused(step_of(alexnet(AlexNetR{}), Precision::f32), Precision::f32);  // 5x5
}

TEST(WinogradPlan, RefusesOtherPrecisions) {
  const auto backend = make_cpu_backend();
  if (const std::string missing = backend->missing_for(Precision::bf16); !missing.empty()) {
    GTEST_SKIP() << missing;
  }
  expect_refused(step_of(resnet(ResNetR{.blocks = 1}), Precision::bf16), Precision::bf16);
}

/// 320 by 256 channels, whose transformed weights a cache may not hold.
TEST(WinogradPlan, TakesManyChannelsInForwardPassesOfFewTiles) {
  if (!has_blocks()) {
    GTEST_SKIP() << "for processors with AVX2";
  }
  Model model{.name = "channels", .sample = {320, 4, 4}, .classes = 3, .layers = {}};
  const Value image = model.add(ConvolutionLayer{256, {.size = 3, .padding = 1}}, {0});
  model.add(LinearLayer{3}, {model.add(FlattenLayer{}, {image})});
  const auto backend = make_cpu_backend();
  const Workload pass = forward_pass(model, 16);
  const auto program = backend->compile(pass, {.execution = Execution::winograd});
  const Dataset data = uniform_data(model, 16);
  set_inputs(*program, pass, data);
  restart(*program, pass);
  program->enqueue(0, 1);
  program->wait();
  EXPECT_NO_THROW(verify_outputs(*program, pass, reference_outputs(pass, data)));

  expect_refused(forward_pass(model, 17), Precision::f32);
  expect_refused(step_of(model, Precision::f32), Precision::f32);
  EXPECT_THROW(
      static_cast<void>(backend->plan(pass, {.threads = 2, .execution = Execution::winograd})),
      Unsupported);
}

TEST(WinogradPlan, IsOneOfWhatAutoChoosesFrom) {
  if (!has_blocks()) {
    GTEST_SKIP() << "for processors with AVX2";
  }
  const auto backend = make_cpu_backend();
  const Workload workload = step_of(resnet(ResNetR{.blocks = 1}), Precision::f32);
  const auto bytes = [&](Execution execution) {
    return backend->plan(workload, {.execution = execution})->bytes();
  };
  EXPECT_EQ(bytes(Execution::automatic),
            std::max(bytes(Execution::eager), bytes(Execution::winograd)));
  const auto chosen =
      backend->compile(workload, {.execution = Execution::automatic})->facts().chosen;
  ASSERT_TRUE(chosen);
  EXPECT_TRUE(chosen->execution == Execution::eager || chosen->execution == Execution::winograd);
  EXPECT_EQ(chosen->threads, 1);
}

}  // namespace
}  // namespace crossover::test
