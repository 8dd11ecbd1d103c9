// SPDX-License-Identifier: Apache-2.0
// Layers that are not trained: what is computed for them, and that the others are trained as ever.
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "crossover/backend.h"
#include "crossover/backends.h"
#include "crossover/networks.h"
#include "crossover/start.h"
#include "crossover/verify.h"
#include "support.h"

namespace crossover::test {
namespace {

constexpr std::int64_t trained_rows = 6;

std::vector<Model> partly_frozen() {
  const std::vector<Model> plain{
      mlp("mlp", {5, 9, 8, 3}, Activation::relu),
      residual_model(),
      joined_model(),
      upsampled_model(),
      padded_model(),
      strided_model(),
      places_model(),
      asking_model(),
      small_alexnet(),
      small_resnet(),
      small_language_model(),
      gpt({.vocabulary = 7, .width = 6, .layers = 2, .heads = 2, .time = 4}),
  };
  std::vector<Model> all;
  for (const Model& model : plain) {
    all.push_back(half_frozen(model, true));
    all.push_back(half_frozen(model, false));
  }
  return all;
}

Model thawed(Model model) {
  for (Layer& layer : model.layers) {
    layer.frozen = false;
  }
  return model;
}

std::vector<double> numbers_after(const Workload& workload, const Model& model,
                                  const std::string& name, std::int64_t steps) {
  Reference reference(workload);
  set_data(reference, uniform_data(model, trained_rows));
  restart(reference);
  reference.run(0, steps);
  return copy(reference[find(workload, name)]);
}

class Frozen : public testing::TestWithParam<Model> {};

TEST_P(Frozen, StaysWhileTheOthersTakeTheStepThatTheyTakeAlone) {
  const TrainingOptions options{
      .rows = trained_rows, .batch = trained_rows, .optimizer = AdamWOptions{.weight_decay = 0.1}};
  const Workload part = training_epoch(GetParam(), options);
  const Workload whole = training_epoch(thawed(GetParam()), options);
  EXPECT_NO_THROW(check(part));
  const auto& update = std::get<Update>(part.steps[0].ops.back());
  const std::vector<Id> all = tensors_of(part, Role::parameter);
  EXPECT_LT(update.parameters.size(), all.size());
  EXPECT_EQ(tensors_of(part, Role::gradient), update.gradients);
  for (const Id id : all) {
    const std::string& name = part[id].name;
    const bool moves = std::count(update.parameters.begin(), update.parameters.end(), id) > 0;
    const std::vector<double> expected = numbers_after(whole, GetParam(), name, moves ? 1 : 0);
    EXPECT_LE(relative_error(numbers_after(part, GetParam(), name, 1), expected), 1e-15) << name;
  }
}

TEST_P(Frozen, IsVerified) {
  for (const std::int64_t accumulate : {1, 2}) {
    const Training training{fuse(training_epoch(GetParam(), {.rows = trained_rows,
                                                             .batch = 3,
                                                             .optimizer = MomentumOptions{},
                                                             .accumulate = accumulate})),
                            uniform_data(GetParam(), trained_rows)};
    const Trajectory expected = reference_trajectory(training.workload, training.data, 2);
    const auto program = started(*make_cpu_backend(), training, 1);
    EXPECT_NO_THROW(verify(*program, training.workload, expected));
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, Frozen, testing::ValuesIn(partly_frozen()), labelled);

TEST(FrozenLayer, HasNoGradientAndNoUpdate) {
  const auto operations = [](const std::vector<std::size_t>& frozen) {
    Model model = mlp("m", {4, 3, 2}, Activation::relu);
    for (const std::size_t layer : frozen) {
      model.layers[layer].frozen = true;
    }
    return training_epoch(model, {.rows = 5, .batch = 5, .optimizer = {}}).steps[0];
  };
  const Step first = operations({0});
  EXPECT_EQ(names_of(first),
            (std::vector<std::string>{"Linear", "Activate", "Linear", "SoftmaxCrossEntropy",
                                      "LinearGrad", "Sgd"}));
  EXPECT_EQ(std::get<LinearGrad>(first.ops[4]).dx, none);
  const Step last = operations({2});
  const auto& above = std::get<LinearGrad>(last.ops[4]);
  EXPECT_NE(above.dx, none);
  EXPECT_EQ(above.dw, none);
  EXPECT_EQ(above.dbias, none);
}

TEST(FrozenLayer, HasParametersOfItsOwn) {
  Model model = mlp("m", {4, 3, 2}, Activation::relu);
  model.layers[1].frozen = true;
  EXPECT_EQ(message_of<std::invalid_argument>([&] {
              static_cast<void>(training_epoch(model, {.rows = 5, .batch = 5, .optimizer = {}}));
            }),
            "model 'm': layer 1 is not to be trained (requires_grad), and has no parameters of its "
            "own");
}

}  // namespace
}  // namespace crossover::test
