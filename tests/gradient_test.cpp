// SPDX-License-Identifier: Apache-2.0
// The reference's gradients against finite differences of its loss.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "crossover/catalogue.h"
#include "crossover/networks.h"
#include "crossover/start.h"
#include "support.h"

namespace crossover::test {
namespace {

struct GradientCase {
  std::string name;
  Model model;
  bool fused = false;
  std::int64_t accumulate = 1;  ///< batches of three rows

  friend std::ostream& operator<<(std::ostream& out, const GradientCase& c) {
    return out << c.name;
  }
};

/// Normalization and dropout where the data comes in, and pooling of what is not activated: what
/// the networks below do not have.
Model unusual_model() {
  Model model{.name = "unusual", .sample = {2, 7, 5}, .classes = 3, .layers = {}};
  Value value = model.add(BatchNormLayer{}, {0});
  value = model.add(DropoutLayer{0.3}, {value});
  value = model.add(AveragePoolLayer{{.size = 3, .stride = 2, .padding = 1}}, {value});
  value = model.add(ConvolutionLayer{4, {.size = 2, .stride = 2, .padding = 1}}, {value});
  const Value largest = model.add(MaxPoolLayer{{.size = 2, .padding = 1, .ceil = true}}, {value});
  const Value flat = model.add(FlattenLayer{}, {largest});
  model.add(LinearLayer{3}, {model.add(DropoutLayer{0.5}, {flat})});
  return model;
}

/// Two products tied to one embedding, attention that sees everything, a linear layer without bias,
/// and a normalization of rows as they come in.
Model unusual_sequences() {
  Model model{.name = "unusual sequences",
              .sample = {4},
              .sample_type = Type::i32,
              .classes = 5,
              .labels = {4},
              .layers = {}};
  const Value tokens = model.add(EmbeddingLayer{5, 6, true}, {0});
  Value value = model.add(PositionEmbeddingLayer{}, {tokens});
  value = model.add(LinearLayer{18, false}, {value});
  value = model.add(AttentionLayer{2}, {value});
  value = model.add(tied_linear(5, 0), {value});
  value = model.add(LinearLayer{6}, {value});
  value = model.add(LayerNormLayer{}, {model.add(AddLayer{}, {value, tokens})});
  model.add(tied_linear(5, 0), {value});
  return model;
}

Model normalized_rows() {
  Model model{.name = "normalized rows", .sample = {4}, .classes = 3, .layers = {}};
  Value value = model.add(BatchNormLayer{}, {model.add(LayerNormLayer{}, {0})});
  value = model.add(BatchNormLayer{}, {model.add(LinearLayer{5}, {value})});
  model.add(LinearLayer{3}, {model.add(ActivationLayer{Activation::silu}, {value})});
  return model;
}

std::vector<GradientCase> gradient_cases() {
  Model activated{.name = "activated", .sample = {3}, .classes = 3, .layers = {}};
  activated.add(ActivationLayer{Activation::sigmoid}, {activated.add(LinearLayer{3}, {0})});
  const std::vector<GradientCase> plain{
      {"linear", mlp("linear", {5, 3}, Activation::relu)},
      {"relu", mlp("relu", {5, 9, 8, 3}, Activation::relu)},
      {"sigmoid", mlp("sigmoid", {5, 9, 8, 3}, Activation::sigmoid)},
      {"tanh", mlp("tanh", {5, 9, 8, 3}, Activation::tanh)},
      {"silu", mlp("silu", {5, 9, 8, 3}, Activation::silu)},
      {"mse", mlp("mse", {5, 9, 8, 1}, Activation::tanh, LossFunction::mse)},
      {"bce", mlp("bce", {5, 9, 8, 3}, Activation::relu, LossFunction::bce)},
      {"residual", residual_model()},
      {"activated_logits", activated},
      {"unusual", unusual_model()},
      {"unusual_sequences", unusual_sequences()},
      {"normalized_rows", normalized_rows()},
      {"joined", joined_model()},
      {"places", places_model()},
      {"parts", parts_model()},
      {"asking", asking_model()},
      {"upsampled", upsampled_model()},
      {"line", line_model()},
      {"padded", padded_model()},
      {"strided", strided_model()},
      {"vit", vit({.image = 6, .patch = 2, .width = 6, .layers = 1, .heads = 2, .classes = 3})},
      {"alexnet_r", small_alexnet()},
      {"alexnet_s", small_alexnet_s()},
      {"resnet_r", small_resnet()},
      {"resnet_s", small_resnet_s()},
      {"mobilenet", mobilenet({.image = 9,
                               .stem = 4,
                               .stages = {{1, 4, 1, 1}, {2, 5, 2, 2}},
                               .head = 8,
                               .classes = 3})},
      {"lstm", small_language_model()},
      {"gpt", gpt({.vocabulary = 7, .width = 6, .layers = 2, .heads = 2, .time = 4})},
  };
  std::vector<GradientCase> all;
  for (const GradientCase& c : plain) {
    all.push_back(c);
    all.push_back({c.name + "_fused", c.model, true});
    all.push_back({c.name + "_accumulated", c.model, false, 2});
  }
  return all;
}

class Gradient : public testing::TestWithParam<GradientCase> {};

TEST_P(Gradient, MatchesFiniteDifferences) {
  const Model& model = GetParam().model;
  const std::int64_t accumulate = GetParam().accumulate;
  Workload workload = training_epoch(model, {.rows = 6,
                                             .batch = 6 / accumulate,
                                             .optimizer = SgdOptions{.learning_rate = 0},
                                             .accumulate = accumulate});
  if (GetParam().fused) {
    workload = fuse(std::move(workload));
  }
  Reference reference(workload);
  set_data(reference, uniform_data(model, 6));
  restart(reference);
  const Id loss = find(workload, "loss");
  const auto loss_now = [&] {
    for (const Id state : tensors_of(workload, Role::state)) {
      std::ranges::fill(reference[state], 0.0);  // so that dropout drops the same
    }
    reference.run(0, accumulate);
    const std::span<double> losses = reference[loss];
    return std::accumulate(losses.begin(), losses.end(), 0.0) / static_cast<double>(accumulate);
  };

  const std::vector<Id> parameters = tensors_of(workload, Role::parameter);
  const std::vector<Id> gradients = tensors_of(workload, Role::gradient);
  ASSERT_EQ(parameters.size(), gradients.size());
  for (std::size_t p = 0; p < parameters.size(); p += thinned() ? 5 : 1) {
    loss_now();
    const std::vector<double> gradient = copy(reference[gradients[p]]);
    EXPECT_GT(relative_error(gradient, std::vector<double>(gradient.size())), 0)
        << "no gradient at all";
    const std::size_t most = thinned() ? 1 : 12;  // of a large tensor
    const std::size_t stride = gradient.size() / most + 1;
    for (std::size_t i = 0; i < gradient.size(); i += stride) {
      constexpr double h = 1e-6;
      double& w = reference[parameters[p]][i];
      const double before = w;
      w = before + h;
      const double above = loss_now();
      w = before - h;
      const double below = loss_now();
      w = before;
      EXPECT_NEAR(gradient[i], (above - below) / (2 * h), 1e-8)
          << workload[parameters[p]].name << " element " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Reference, Gradient, testing::ValuesIn(gradient_cases()), labelled);

}  // namespace
}  // namespace crossover::test
