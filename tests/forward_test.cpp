// SPDX-License-Identifier: Apache-2.0
// forward_pass(): a network in use, and what verify_outputs() makes of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "crossover/catalogue.h"
#include "crossover/networks.h"
#include "crossover/start.h"
#include "crossover/verify.h"
#include "support.h"

namespace crossover::test {
namespace {

/// Batch normalization behind convolutions with and without a bias, of vectors, behind a sum, and
/// of what two layers read; dropout.
Model normalized_model() {
  Model model{.name = "normalized", .sample = {3, 8, 8}, .classes = 4, .layers = {}};
  Value value = model.add(ConvolutionLayer{5, {.size = 3, .padding = 1}, false}, {0});
  value = model.add(BatchNormLayer{}, {value});
  const Value trunk = model.add(ActivationLayer{Activation::relu}, {value});
  value = model.add(ConvolutionLayer{5, {.size = 3, .padding = 1}}, {trunk});
  const Value branch = model.add(BatchNormLayer{}, {value});
  value = model.add(AddLayer{}, {branch, trunk});
  value = model.add(ActivationLayer{Activation::relu}, {model.add(BatchNormLayer{}, {value})});
  const Value read_twice = model.add(ConvolutionLayer{5, {.size = 1}}, {value});
  value = model.add(AddLayer{}, {model.add(BatchNormLayer{}, {read_twice}), read_twice});
  value = model.add(MaxPoolLayer{{.size = 2, .stride = 2}}, {value});
  value = model.add(DropoutLayer{0.5}, {model.add(FlattenLayer{}, {value})});
  value = model.add(BatchNormLayer{}, {model.add(LinearLayer{6}, {value})});
  model.add(LinearLayer{4}, {model.add(DropoutLayer{0.5}, {value})});
  return model;
}

/// A forward pass of one sample lays weights of states in blocks, of which these have a whole one
/// and a part.
Model recurrent_model() {
  Model model{.name = "recurrent",
              .sample = {3},
              .sample_type = Type::i32,
              .classes = 7,
              .labels = {3},
              .layers = {}};
  Value value = model.add(EmbeddingLayer{7, 6}, {0});
  value = model.add(GruLayer{48}, {model.add(LstmLayer{36}, {value})});
  model.add(LinearLayer{7}, {value});
  return model;
}

std::vector<Model> models() {
  return {mlp("mlp", {5, 9, 8, 3}, Activation::tanh),
          mlp("mse", {5, 9, 8, 1}, Activation::silu, LossFunction::mse),
          mlp("wide", {5, 515, 513, 3}, Activation::relu),  // more weights than a cache holds
          normalized_model(),
          residual_model(),
          joined_model(),
          line_model(),
          strided_model(),
          places_model(),
          parts_model(),
          asking_model(),
          small_language_model(),
          recurrent_model(),
          gpt({.vocabulary = 7, .width = 6, .layers = 2, .heads = 2, .time = 4})};
}

Dataset rows_of(const Model& model, std::int64_t rows) { return uniform_data(model, rows); }

/// On the CPU, after one pass.
std::unique_ptr<Program> passed(const Workload& workload, const Dataset& data,
                                const CompileOptions& options = {}) {
  auto program = make_cpu_backend()->compile(workload, options);
  set_inputs(*program, workload, data);
  restart(*program, workload);
  program->enqueue(0, 1);
  program->wait();
  return program;
}

TEST(ForwardPass, HasNothingThatOnlyTrainingNeeds) {
  const Workload pass = forward_pass(normalized_model(), 3);
  for (const Tensor& tensor : pass.tensors) {
    EXPECT_TRUE(tensor.role == Role::data || tensor.role == Role::input ||
                tensor.role == Role::parameter || tensor.role == Role::activation)
        << tensor.name;
    EXPECT_EQ(tensor.name.find("label"), std::string::npos);
  }
  const std::vector<std::string> names = names_of(pass.steps.front());
  EXPECT_EQ(std::count(names.begin(), names.end(), "Dropout"), 0);
  EXPECT_EQ(pass[find(pass, "outputs")].shape, (Shape{3, 4}));
  EXPECT_EQ(parameter_count(pass),
            parameter_count(training_epoch(normalized_model(), {.rows = 3, .batch = 3})));
}

TEST(ForwardPass, FoldsNormalizationIntoTheConvolutionInFrontOfIt) {
  const Workload pass = forward_pass(normalized_model(), 2);
  const auto convolutions = [](const Workload& workload) {
    const std::vector<std::string> names = names_of(workload.steps.front());
    return std::count(names.begin(), names.end(), "Convolution");
  };
  EXPECT_EQ(convolutions(pass), 3 + 5);
  // Not behind a sum, of what another reads as well, or of vectors.
  EXPECT_EQ(convolutions(fuse(pass)), 3 + 3);
}

TEST(ForwardPass, ComesToTheSameFused) {
  for (const Model& model : models()) {
    const Workload pass = forward_pass(model, 3);
    const std::vector<double> expected = reference_outputs(pass, rows_of(model, 3));
    EXPECT_LT(relative_error(reference_outputs(fuse(pass), rows_of(model, 3)), expected), 1e-12)
        << model.name;
  }
}

TEST(ForwardPass, IsThatOfTrainingWithoutNormalizationAndDropout) {
  const Model model = mlp("mlp", {5, 9, 8, 3}, Activation::tanh);
  const Workload epoch = training_epoch(model, {.rows = 4, .batch = 4});
  Reference reference(forward_part(epoch));
  set_data(reference, rows_of(model, 4));
  restart(reference);
  reference.run(0, 1);
  const auto* last = std::get_if<Linear>(
      &*std::find_if(epoch.steps[0].ops.rbegin(), epoch.steps[0].ops.rend(),
                     [](const Op& op) { return std::holds_alternative<Linear>(op); }));
  EXPECT_EQ(reference_outputs(forward_pass(model, 4), rows_of(model, 4)), copy(reference[last->y]));
}

TEST(ForwardPass, ComesToWhatPyTorchComesTo) {
  Model model{.name = "n", .sample = {2, 5, 5}, .classes = 3, .layers = {}};
  Value value = model.add(ConvolutionLayer{4, {.size = 3}}, {0});
  value = model.add(ActivationLayer{Activation::relu}, {model.add(BatchNormLayer{}, {value})});
  value = model.add(FlattenLayer{}, {model.add(DropoutLayer{0.5}, {value})});
  model.add(LinearLayer{3}, {value});
  // The same numbers stand in plots/crossover_bench/peers/tests/__init__.py.
  const std::vector<double> expected{0.0279358404789,  -0.242967570016, -0.398105105315,
                                     -0.223550004056,  -0.375574303393, -0.500092879876,
                                     -0.0950225236163, -0.259074703824, -0.211076447412};
  const std::vector<double> outputs = reference_outputs(forward_pass(model, 3), rows_of(model, 3));
  EXPECT_LT(relative_error(outputs, expected), 1e-11);
}

TEST(ForwardPass, IsVerifiedOnTheCpuInEveryExecution) {
  const auto cpu = make_cpu_backend();
  for (const Model& model : models()) {
    for (const std::int64_t batch : {1, 3, 33}) {
      const Workload pass = forward_pass(model, batch);
      const std::vector<double> expected = reference_outputs(pass, rows_of(model, batch));
      for (const Execution execution : cpu->executions(pass, Precision::f32)) {
        const CompileOptions options{.threads = 2, .execution = execution};
        const Workload optimized = cpu->optimize(pass, options);
        std::unique_ptr<Program> program;
        try {
          program = passed(optimized, rows_of(model, batch), options);
        } catch (const Unsupported&) {  // of too few channels
          EXPECT_EQ(execution, Execution::winograd);
          continue;
        }
        EXPECT_NO_THROW(verify_outputs(*program, optimized, expected))
            << model.name << " of " << batch << " " << static_cast<int>(execution);
      }
    }
  }
}

/// What is made of parameters once is made again: here of each one in turn.
void expect_parameters_after_a_pass(const Model& model, std::int64_t batch) {
  const Workload pass = forward_pass(model, batch);
  const Dataset data = rows_of(model, batch);
  const auto cpu = make_cpu_backend();
  for (const Id parameter : tensors_of(pass, Role::parameter)) {
    Reference reference(pass);
    set_inputs(reference, data);
    restart(reference);
    for (double& value : reference[parameter]) {
      value = static_cast<double>(static_cast<float>(value * 1.5 + 0.01));
    }
    reference.run(0, 1);
    const std::vector<double> changed = copy(reference[parameter]);
    const std::vector<double> expected = copy(reference[find(pass, "outputs")]);
    for (const Execution execution : cpu->executions(pass, Precision::f32)) {
      const auto program = passed(pass, data, {.threads = 2, .execution = execution});
      EXPECT_THROW(verify_outputs(*program, pass, expected), Mismatch);
      upload(*program, pass, parameter, changed);
      program->enqueue(0, 1);
      program->wait();
      EXPECT_NO_THROW(verify_outputs(*program, pass, expected))
          << pass[parameter].name << " " << static_cast<int>(execution);
    }
  }
}

TEST(ForwardPass, ReadsParametersThatCameAfterAPass) {
  Model model{.name = "blocks", .sample = {16, 8, 8}, .classes = 3, .layers = {}};
  const Value image = model.add(ConvolutionLayer{32, {.size = 3, .padding = 1}}, {0});
  const Value hidden = model.add(LinearLayer{80}, {model.add(FlattenLayer{}, {image})});
  model.add(LinearLayer{3}, {hidden});
  expect_parameters_after_a_pass(model, 2);
  expect_parameters_after_a_pass(recurrent_model(), 1);
}

TEST(ForwardPass, IsVerifiedIn16Bits) {
  const auto cpu = make_cpu_backend();
  if (const std::string missing = cpu->missing_for(Precision::bf16); !missing.empty()) {
    GTEST_SKIP() << missing;
  }
  for (const Model& model : {normalized_model(), mlp("mlp", {5, 9, 8, 3}, Activation::tanh)}) {
    const Workload pass = forward_pass(model, 3, Precision::bf16);
    const std::vector<std::string> names = names_of(pass.steps.front());
    EXPECT_LE(std::count(names.begin(), names.end(), "Cast"), 2) << "of a parameter";
    const Workload optimized = cpu->optimize(pass);
    const CompileOptions options{.precision = Precision::bf16};
    const auto program = passed(optimized, rows_of(model, 3), options);
    const std::vector<double> expected = reference_outputs(pass, rows_of(model, 3));
    EXPECT_NO_THROW(verify_outputs(*program, optimized, expected, Precision::bf16)) << model.name;
  }
}

TEST(ForwardPass, IsPlannedForAGpu) {
  const auto planned = make_planned_gpu();
  for (const Model& model : models()) {
    for (const Precision precision : {Precision::f32, Precision::bf16}) {
      const Workload pass = forward_pass(model, 3, precision);
      const std::vector<Execution> all = planned->executions(pass, precision);
      EXPECT_EQ(std::count(all.begin(), all.end(), Execution::persistent), 0) << model.name;
      for (const Execution execution : {Execution::eager, Execution::graph}) {
        for (const Placement placement : {Placement::resident, Placement::pinned}) {
          const CompileOptions options{
              .precision = precision, .execution = execution, .placement = placement};
          const Workload arranged = planned->optimize(pass, options);
          EXPECT_GT(planned->estimate(arranged, options).launches, 0) << model.name;
        }
      }
    }
  }
}

TEST(ForwardPass, OfTheFirstRowsIsComparedWithThoseOfABatch) {
  for (const Model& model : {normalized_model(), models().back()}) {
    const Workload pass = forward_pass(model, 5);
    const auto program = passed(pass, rows_of(model, 5));
    Dataset two = rows_of(model, 5);
    two.inputs.resize(two.inputs.size() / 5 * 2);
    const std::vector<double> first = reference_outputs(forward_pass(model, 2), two);
    EXPECT_EQ(verify_outputs(*program, pass, first).entries, std::ssize(first));
  }
}

TEST(ForwardPass, WithAWrongOutputIsRefused) {
  const Model model = normalized_model();
  const Workload pass = forward_pass(model, 3);
  const auto program = passed(pass, rows_of(model, 3));
  std::vector<double> expected = reference_outputs(pass, rows_of(model, 3));
  expected[7] *= 1.01;
  EXPECT_THROW(verify_outputs(*program, pass, expected), Mismatch);

  const Id id = tensors_of(pass, Role::parameter).back();
  std::vector<double> values = download(*program, pass, id);
  values.front() = std::numeric_limits<double>::quiet_NaN();
  upload(*program, pass, id, values);
  program->enqueue(0, 1);
  program->wait();
  // Of no entry, so that it is not the comparison that finds it.
  EXPECT_THROW(verify_outputs(*program, pass, {}), Mismatch);
}

TEST(ForwardPass, KeepsNoActivationLongerThanItIsRead) {
  const Model deep = mlp("deep", {64, 64, 64, 64, 64, 64, 64, 64, 4}, Activation::relu);
  const auto cpu = make_cpu_backend();
  const auto bytes = [&](const Workload& workload) {
    const auto plan = cpu->plan(cpu->optimize(workload), {});
    return plan->bytes_keeping_activations() - plan->bytes();
  };
  const std::int64_t of_layer = 512 * 64 * 4;
  EXPECT_GE(bytes(forward_pass(deep, 512)), 5 * of_layer);
}

}  // namespace
}  // namespace crossover::test
