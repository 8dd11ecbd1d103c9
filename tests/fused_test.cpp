// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "../src/cpu/fused/steps.h"
#include "crossover/backend.h"
#include "crossover/catalogue.h"
#include "crossover/dense_training.h"
#include "crossover/start.h"
#include "crossover/training.h"
#include "crossover/verify.h"
#include "golden.h"
#include "support.h"

namespace crossover::test {

// ---- Which Workloads are seen as training of a chain of Linear layers, and what is said of the
// others.

namespace {

TrainingOptions options(const Optimizer& optimizer) {
  return {.rows = 12, .batch = 5, .optimizer = optimizer};
}

Model small() { return mlp("m", {4, 3, 2}, Activation::relu); }

/// "" where it is one.
std::string refusal(const Workload& workload) {
  try {
    static_cast<void>(dense_training(workload));
    return "";
  } catch (const Unsupported& reason) {
    return reason.what();
  }
}

TEST(DenseTraining, SeesLayersFromInputsToClasses) {
  const Workload workload = fuse(training_epoch(small(), options(SgdOptions{})));
  const std::vector<DenseStep> steps = dense_training(workload);
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_EQ(steps[0].batch, 5);
  EXPECT_EQ(steps[1].batch, 2);
  for (const DenseStep& step : steps) {
    ASSERT_EQ(step.layers.size(), 2U);
    EXPECT_EQ(workload[step.inputs()].role, Role::input);
    EXPECT_EQ(step.classes(), 2);
    EXPECT_EQ(step.layers[0].activation, Activation::relu);
    EXPECT_EQ(step.layers[0].in, 4);
    EXPECT_EQ(step.layers[0].out, 3);
    EXPECT_EQ(step.layers[0].dx, none);
    EXPECT_EQ(step.layers[1].x, step.layers[0].y);
    EXPECT_EQ(step.layers[1].x_activation, Activation::relu);
    EXPECT_EQ(step.layers[1].dx, step.layers[0].dy);
    EXPECT_EQ(step.layers[1].dy, step.loss.dlogits);
    EXPECT_STREQ(step.update->name(), "Sgd");
    EXPECT_FALSE(step.updates_in_place());
  }
  EXPECT_EQ(steps[0].layers[1].w, steps[1].layers[1].w);
}

TEST(DenseTraining, SeesActivationsThatAreOperationsOfTheirOwn) {
  const Model silu = mlp("m", {4, 3, 2}, Activation::silu);
  const Workload workload = fuse(training_epoch(silu, options(SgdOptions{})));
  const DenseStep step = dense_training(workload)[0];
  ASSERT_EQ(step.layers.size(), 2U);
  EXPECT_EQ(step.layers[0].activation, Activation::silu);
  EXPECT_NE(step.layers[0].sum, step.layers[0].y);
  EXPECT_EQ(step.layers[1].x, step.layers[0].y);
  EXPECT_EQ(step.layers[1].x_activation, Activation::silu);
  EXPECT_NE(step.layers[1].product, step.layers[1].dx);
  EXPECT_EQ(step.layers[1].dx, step.layers[0].dy);
  EXPECT_EQ(step.layers[1].sum, none);
  EXPECT_EQ(step.layers[0].product, none);
}

TEST(DenseTraining, SeesWhoUpdates) {
  const Workload in_place = fuse_update(fuse(training_epoch(small(), options(SgdOptions{}))));
  EXPECT_TRUE(dense_training(in_place)[0].updates_in_place());
  const Workload adamw = fuse(training_epoch(small(), options(AdamWOptions{})));
  EXPECT_STREQ(dense_training(adamw)[0].update->name(), "AdamW");
  const Workload momentum = fuse(training_epoch(small(), options(MomentumOptions{})));
  EXPECT_STREQ(dense_training(momentum)[0].update->name(), "Momentum");
  EXPECT_FALSE(dense_training(momentum)[0].updates_in_place());
}

TEST(DenseTraining, SaysWhatStandsInTheWay) {
  TrainingOptions accumulated = options(SgdOptions{});
  accumulated.accumulate = 2;
  EXPECT_NE(refusal(fuse(training_epoch(small(), accumulated))).find("layers add to gradients"),
            std::string::npos);
  TrainingOptions narrow = options(SgdOptions{});
  narrow.precision = Precision::bf16;
  EXPECT_NE(refusal(fuse(training_epoch(small(), narrow))), "");
  const std::string residual = refusal(fuse(training_epoch(residual_model(), options({}))));
  EXPECT_NE(residual.find("Linear layers alone"), std::string::npos) << residual;
  const Workload not_fused = training_epoch(small(), options(SgdOptions{}));
  EXPECT_NE(refusal(not_fused).find("goes on with Activate"), std::string::npos);
  const Task images = find_model("alexnet-r");
  EXPECT_NE(refusal(fuse(training_epoch(images.model, {.rows = 2, .batch = 2})))
                .find("goes on with Convolution"),
            std::string::npos);
}

}  // namespace

// ---- Fused execution: shapes that fit no tile, each operation against the reference, golden runs.

namespace {

using cpu::fused::few_samples;

struct FusedCase {
  std::string name;
  std::vector<std::int64_t> widths;
  std::int64_t rows, batch;
  Activation activation;
  LossFunction loss = LossFunction::cross_entropy;
};

std::vector<FusedCase> fused_cases() {
  std::vector<FusedCase> all{
      {"one_feature", {1, 1, 2}, 3, 1, Activation::relu},
      {"odd", {3, 5, 7, 3}, 37, 17, Activation::sigmoid},
      {"lines", {16, 32, 16, 4}, 48, 16, Activation::relu},
      {"past_lines", {17, 33, 18, 5}, 70, 33, Activation::sigmoid},
      {"one_row", {20, 19, 2}, 4, 1, Activation::relu},
      {"many_classes", {6, 40}, 30, 30, Activation::identity},
      {"one_layer", {29, 2}, 25, 10, Activation::identity},
      {"samples", {70, 130, 66, 3}, 250, 129, Activation::relu},  // each thread has some
      {"samples_then_none", {5, 40, 33, 3}, 410, 200, Activation::sigmoid},
      {"features", {9, 300, 290, 2}, 40, 20, Activation::sigmoid},  // likewise
      {"more_weights_than_samples", {70, 230, 166, 3}, 250, 129, Activation::relu},
      {"rows_past_lines", {4, 24, 2}, 230, 200, Activation::relu},
      {"mse", {5, 40, 33, 3}, 410, 200, Activation::tanh, LossFunction::mse},  // by samples
      {"chunks", {4, 32, 16, 4}, 3300, 3000, Activation::tanh, LossFunction::mse},
      {"chunks_of_classes", {4, 32, 16, 4}, 3300, 3000, Activation::relu},
      {"mse_one", {2, 20, 1}, 37, 17, Activation::tanh, LossFunction::mse},
      {"bce", {9, 33, 21, 3}, 70, 33, Activation::relu, LossFunction::bce},
      {"gelu_by_samples", {5, 40, 33, 3}, 410, 200, Activation::gelu, LossFunction::mse},
      {"silu_by_features", {9, 300, 290, 2}, 40, 20, Activation::silu},
  };
  for (const auto& [name, activation] : named_activations) {
    all.push_back({name, {9, 33, 21, 3}, 70, 33, activation});
    all.push_back({std::string("few_") + name, {9, 33, 21, 3}, 7, 3, activation});
  }
  // Those that lie by rows, and the first that do not.
  for (std::int64_t batch = 1; batch <= few_samples + 1; ++batch) {
    const std::string count = std::to_string(batch);
    const std::int64_t rows = 3 * batch + 1;  // a batch of one sample at the end
    all.push_back({"few_" + count, {19, 37, 22, 5}, rows, batch, Activation::relu});
    all.push_back(
        {"few_mse_" + count, {17, 50, 33}, rows, batch, Activation::tanh, LossFunction::mse});
  }
  all.push_back({"few_bce", {21, 34, 3}, 5, 2, Activation::relu, LossFunction::bce});
  all.push_back({"few_of_many_classes", {18, 35}, 7, 3, Activation::identity});
  all.push_back({"few_by_features", {9, 300, 290, 2}, 4, 2, Activation::silu});
  return all;
}

class Fused : public testing::TestWithParam<std::tuple<FusedCase, std::string, int>> {
 protected:
  void SetUp() override {
    if (thinned() && std::get<1>(GetParam()) != "sgd" && std::get<2>(GetParam()) == 1) {
      GTEST_SKIP() << "under sanitizers one thread does with sgd what it does with the others";
    }
  }
  [[nodiscard]] static Training training() {
    const auto& [shape, optimizer, threads] = GetParam();
    const Model model = mlp("m", shape.widths, shape.activation, shape.loss);
    TrainingOptions options{.rows = shape.rows, .batch = shape.batch};
    if (optimizer == "adamw") {
      options.optimizer = AdamWOptions{.learning_rate = 0.01, .weight_decay = 0.1};
    } else if (optimizer == "momentum") {
      options.optimizer = MomentumOptions{.learning_rate = 0.03};
    } else {
      options.optimizer = SgdOptions{.learning_rate = 0.1};
    }
    return {training_epoch(model, options), uniform_data(model, shape.rows)};
  }
  [[nodiscard]] static CompileOptions options() {
    return {.threads = std::get<2>(GetParam()), .execution = Execution::fused};
  }
};

TEST_P(Fused, TrainsAsTheReferenceDoes) {
  const Training plain = training();
  const Trajectory expected = reference_trajectory(
      plain.workload, plain.data, 2 * std::ssize(plain.workload.order));  // two epochs
  const auto backend = make_cpu_backend();
  for (const Workload& workload : {fuse(plain.workload), backend->optimize(plain.workload)}) {
    const auto program = backend->compile(workload, options());
    set_data(*program, workload, plain.data);
    EXPECT_NO_THROW(verify(*program, workload, expected));
  }
}

TEST_P(Fused, DoesEachOperationRight) {
  const Training plain = training();
  const auto backend = make_cpu_backend();
  for (const Workload& workload : {fuse(plain.workload), backend->optimize(plain.workload)}) {
    CompileOptions keeping = options();
    keeping.keep_activations = true;
    const auto program = backend->compile(workload, keeping);
    set_data(*program, workload, plain.data);
    Reference reference(workload);
    set_data(reference, plain.data);
    OperationVerification found;
    EXPECT_NO_THROW(found = verify_operations(*program, reference, 3, Precision::f32));
    EXPECT_EQ(found.operations, std::ssize(workload.steps.front().ops));
  }
}

std::string name_of(const testing::TestParamInfo<Fused::ParamType>& parameters) {
  const auto& [shape, optimizer, threads] = parameters.param;
  return shape.name + "_" + optimizer + "_" + std::to_string(threads);
}

INSTANTIATE_TEST_SUITE_P(Shapes, Fused,
                         testing::Combine(testing::ValuesIn(fused_cases()),
                                          testing::Values("sgd", "momentum", "adamw"),
                                          testing::Values(1, 3)),
                         name_of);

/// Those with an update after each batch.
std::vector<Golden> golden_chains() {
  std::vector<Golden> all = golden_mlps();
  std::erase_if(all, [](const Golden& golden) { return golden.options.accumulate != 1; });
  return all;
}

class FusedGolden : public testing::TestWithParam<std::tuple<Golden, int>> {};

TEST_P(FusedGolden, Trajectory) {
  const auto& [golden, threads] = GetParam();
  if (thinned() && golden.large) {
    GTEST_SKIP() << "large: without sanitizers, or with CROSSOVER_TEST_ALL";
  }
  for (const Form form : {Form::fused, Form::update_fused}) {
    const Training training = golden.training(form);
    expect_golden(golden, training,
                  *started(*make_cpu_backend(), training,
                           {.threads = threads, .execution = Execution::fused}));
  }
}

INSTANTIATE_TEST_SUITE_P(Mlp, FusedGolden,
                         testing::Combine(testing::ValuesIn(golden_chains()),
                                          testing::Values(1, 2)),
                         labelled);

/// Into how many parts the samples of a model's whole batch are cut.
std::int64_t parts_of_samples(const std::string& name, int threads, bool keep = false) {
  const Task task = find_model(name);
  const Workload workload =
      fuse(training_epoch(task.model, {.rows = task.rows, .batch = task.batch}));
  cpu::fused::Arena arena;
  cpu::fused::Memory memory(workload.tensors);
  const auto steps =
      cpu::fused::bind_steps(workload, dense_training(workload), threads, keep, arena, memory);
  return std::ssize(steps.front().samples);
}

TEST(FusedSteps, AreCutBySamplesWhereThatPays) {
  EXPECT_EQ(parts_of_samples("disc-6", 2), 2);
  EXPECT_EQ(parts_of_samples("disc-6", 7), 7);
  EXPECT_EQ(parts_of_samples("disc-6", 1), 1);
  EXPECT_EQ(parts_of_samples("disc-6", 8), 1) << "100 samples are 7 lines";
  EXPECT_EQ(parts_of_samples("disc-4", 2), 1) << "the waits would be longer";
  EXPECT_EQ(parts_of_samples("disc-9", 2), 1) << "more gradients than activations";
  EXPECT_EQ(parts_of_samples("heart", 2), 1) << "10 samples are one line";
  EXPECT_EQ(parts_of_samples("disc-6", 2, true), 1) << "activations are kept whole";
}

/// Whether the samples of an MLP lie by rows.
bool lie_by_rows(const std::vector<std::int64_t>& widths, std::int64_t rows, std::int64_t batch) {
  const Model model = mlp("m", widths, Activation::relu);
  return cpu::fused::lie_by_rows(
      dense_training(fuse(training_epoch(model, {.rows = rows, .batch = batch}))));
}

TEST(FusedSteps, HaveFewSamplesByRowsWhereThatPays) {
  EXPECT_TRUE(lie_by_rows({40, 100, 100, 10}, 4, 1));
  EXPECT_TRUE(lie_by_rows({40, 100, 100, 10}, 4, 4));
  EXPECT_TRUE(lie_by_rows({784, 10}, 5, 4)) << "one at the end";
  EXPECT_FALSE(lie_by_rows({40, 100, 100, 10}, 5, 5)) << "more than few";
  EXPECT_FALSE(lie_by_rows({40, 100, 100, 10}, 9, 8)) << "one at the end, but more before";
  EXPECT_FALSE(lie_by_rows({2, 4, 2}, 1, 1)) << "too narrow";
  EXPECT_TRUE(lie_by_rows({13, 16, 2}, 2, 2));
  EXPECT_FALSE(lie_by_rows({13, 16, 2}, 4, 4)) << "too narrow for so many";
  EXPECT_TRUE(lie_by_rows({9, 40, 2}, 4, 4)) << "as in PassesWhatIsNoNumber";
}

TEST(FusedPlan, CountsWhatItTakes) {
  const Task task = find_model("disc-8");
  const Workload workload =
      fuse(training_epoch(task.model, {.rows = task.rows, .batch = task.batch}));
  const auto plan = make_cpu_backend()->plan(workload, {.execution = Execution::fused});
  EXPECT_EQ(plan->launches(), 1);
  std::int64_t least = 0;  // parameters and data
  std::int64_t all = 0;
  for (const Tensor& tensor : workload.tensors) {
    all += bytes(tensor);
    least += tensor.role == Role::parameter || tensor.role == Role::data ? bytes(tensor) : 0;
  }
  EXPECT_GT(plan->bytes(), least);
  EXPECT_LT(plan->bytes(), 2 * all);
}

TEST(FusedPlan, RefusesOtherPrecisions) {
  const Task task = find_model("disc-2");
  const Workload workload =
      fuse(training_epoch(task.model, {.rows = 4, .batch = 2, .precision = Precision::bf16}));
  EXPECT_THROW(static_cast<void>(make_cpu_backend()->plan(
                   workload, {.precision = Precision::bf16, .execution = Execution::fused})),
               Unsupported);
}

/// oneDNN's relu makes a number of it. The wider network's samples lie by rows.
TEST(FusedProgram, PassesWhatIsNoNumber) {
  for (const std::vector<std::int64_t>& widths : {std::vector<std::int64_t>{3, 4, 2}, {9, 40, 2}}) {
    for (const auto& [name, activation] : named_activations) {
      const Model model = mlp("m", widths, activation, LossFunction::mse);
      const Workload workload = fuse(training_epoch(model, {.rows = 4, .batch = 4}));
      Dataset data = uniform_data(model, 4);
      data.inputs[0] = std::numeric_limits<double>::quiet_NaN();
      const auto program = make_cpu_backend()->compile(workload, {.execution = Execution::fused});
      set_data(*program, workload, data);
      restart(*program, workload);
      program->enqueue(0, 1);
      program->wait();
      EXPECT_TRUE(std::isnan(download(*program, workload, find(workload, "loss"))[0])) << name;
    }
  }
}

TEST(FusedProgram, RefusesCopiesOfTheWrongSize) {
  const Task task = find_model("disc-2");
  const Workload workload = fuse(training_epoch(task.model, {.rows = 4, .batch = 2}));
  const auto program = make_cpu_backend()->compile(workload, {.execution = Execution::fused});
  std::vector<std::byte> few(3);
  const Id weight = tensors_of(workload, Role::parameter).front();
  EXPECT_THROW(program->upload(weight, few), std::invalid_argument);
  EXPECT_THROW(program->download(weight, few), std::invalid_argument);
  std::vector<std::byte> gradient(
      static_cast<std::size_t>(bytes(workload[tensors_of(workload, Role::gradient).front()])));
  EXPECT_THROW(program->download(tensors_of(workload, Role::gradient).front(), gradient),
               std::invalid_argument);  // it never leaves the registers
}

}  // namespace

}  // namespace crossover::test
