// SPDX-License-Identifier: Apache-2.0
// The reference's gradients against finite differences of its loss.
#include <gtest/gtest.h>

#include <cmath>

#include "crossover/start.h"
#include "support.h"

namespace crossover::test {
namespace {

struct Case {
  std::string name;
  Model model;
  bool fused;

  friend std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const bool fused : {false, true}) {
    const std::string suffix = fused ? "_fused" : "";
    all.push_back({"linear" + suffix, mlp("linear", {5, 3}, Activation::relu), fused});
    all.push_back({"relu" + suffix, mlp("relu", {5, 9, 8, 3}, Activation::relu), fused});
    all.push_back({"sigmoid" + suffix, mlp("sigmoid", {5, 9, 8, 3}, Activation::sigmoid), fused});
    all.push_back({"residual" + suffix, residual_model(), fused});
    Model activated{.name = "activated", .sample = {3}, .classes = 3, .layers = {}};
    activated.add(ActivationLayer{Activation::sigmoid}, {activated.add(LinearLayer{3}, {0})});
    all.push_back({"activated_logits" + suffix, activated, fused});
  }
  return all;
}

class Gradient : public testing::TestWithParam<Case> {};

TEST_P(Gradient, MatchesFiniteDifferences) {
  const Model& model = GetParam().model;
  Workload workload =
      training_epoch(model, {.rows = 6, .batch = 6, .optimizer = SgdOptions{.learning_rate = 0}});
  if (GetParam().fused) {
    workload = fuse(std::move(workload));
  }
  Reference reference(workload);
  set_data(reference, uniform_rows(model.sample, 6, model.classes));
  restart(reference);
  const Id loss = find(workload, "loss");
  const auto loss_now = [&] {
    reference.run(0, 1);
    return reference[loss][0];
  };

  const std::vector<Id> parameters = tensors_of(workload, Role::parameter);
  const std::vector<Id> gradients = tensors_of(workload, Role::gradient);
  ASSERT_EQ(parameters.size(), gradients.size());
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    loss_now();
    const std::vector<double> gradient = copy(reference[gradients[p]]);
    EXPECT_GT(relative_error(gradient, std::vector<double>(gradient.size())), 0)
        << "no gradient at all";
    for (std::size_t i = 0; i < gradient.size(); ++i) {
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

INSTANTIATE_TEST_SUITE_P(Reference, Gradient, testing::ValuesIn(cases()),
                         [](const auto& parameters) { return parameters.param.name; });

}  // namespace
}  // namespace crossover::test
